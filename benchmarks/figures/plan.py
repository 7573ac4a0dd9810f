"""The plan: what it costs a server to foresee when everybody starts, with few and with many jobs waiting.

It is plain Python and asks no store. A full pass plans all places anew, as after a change at the head of
the line, for the worst case and as expected together; an append adds one place at the end and quotes it. The
mix of classes is even and the floor is small, so that the line matters.
"""

import statistics
import time
from collections.abc import Callable

from benchmarks.figures.figure import Figure, Reading
from benchmarks.scale import Scale
from benchmarks.stand import Stands
from benchmarks.systems.system import System
from maitred.core.classes import DurationClass, Limit
from maitred.core.estimate import Forecast, Waiting
from maitred.core.occupancy import Occupancy
from maitred.core.settings import SECOND

_PASSES = 5
_APPENDED = 200
_CLASSES = (
    DurationClass("fast", 3 * SECOND),
    DurationClass("medium", 10 * SECOND, Limit(2)),
    DurationClass("slow", 30 * SECOND, Limit(1)),
)
_FLOOR = Occupancy(now=1_000 * SECOND, classes=_CLASSES, slots=4, kill_after=SECOND // 2)


class PlanCost(Figure):
    name = "plan"
    every_round = False

    def applies_to(self, system: System) -> bool:
        return system.has_probe and system.figures is None

    def measure(self, system: System, stands: Stands, scale: Scale) -> Reading:
        del system, stands
        reading = {}
        for length in scale.crowds:
            forecast = Forecast(
                _FLOOR, (Waiting(1 + place % 3, elastic=not place % 3) for place in range(length))
            )
            passes = [_seconds(_whole, forecast) for _ in range(_PASSES)]
            appended = [_seconds(_append, forecast) for _ in range(_APPENDED)]
            reading[f"pass_{length}_s"] = statistics.median(passes)
            reading[f"append_{length}_us"] = statistics.median(appended) * 1e6
        return reading

    def words(self, reading: Reading) -> str:
        return ", ".join(f"{name} {number:.3g}" for name, number in reading.items())


def _whole(forecast: Forecast) -> None:
    forecast.look(_FLOOR)
    forecast.estimate(len(forecast) - 1)


def _append(forecast: Forecast) -> None:
    forecast.append(Waiting(1 + len(forecast) % 3, elastic=False))
    forecast.estimate(len(forecast) - 1)


def _seconds(step: Callable[[Forecast], None], forecast: Forecast) -> float:
    begun = time.perf_counter()
    step(forecast)
    return time.perf_counter() - begun
