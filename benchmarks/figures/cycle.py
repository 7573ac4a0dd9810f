"""The cycle: what it costs the store to let a fast job pass slow ones that wait for their level.

A crowd of slow jobs stands in front of a full level, with a slot free beside it. Fast jobs come one after
another: each is submitted, starts at once and ends. The server's own count of microseconds in scripts is
divided by the number of jobs. The stores take turns, as in `server_time.py`.
"""

import contextlib
import statistics
from collections import defaultdict

from benchmarks.figures.figure import Figure, Reading
from benchmarks.figures.server_time import Line
from benchmarks.scale import Scale
from benchmarks.stand import Stands
from benchmarks.systems.system import System

_SECONDS = 600.0
_PASSES = 5
_JOBS = 320


class Cycle(Figure):
    name = "cycle"
    every_round = False

    def applies_to(self, system: System) -> bool:
        return system.has_probe and system.figures is not None

    def measure(self, system: System, stands: Stands, scale: Scale) -> Reading:
        taken: dict[str, list[float]] = defaultdict(list)
        with contextlib.ExitStack() as stack:
            lines = []
            for length in scale.crowds:
                stand = stack.enter_context(system.at(stands))
                probe = stand.start(system.probe(stand))
                probe.ask({"do": "crowd", "jobs": length, "submitters": scale.submitters}, _SECONDS)
                stand.store.wait_until_flushed(_SECONDS)
                lines.append(Line(length, stand.store, probe))
            for _ in range(_PASSES):
                for line in lines:
                    taken[overtaking(line.length)].append(line.cost({"do": "overtake", "jobs": _JOBS}))
        return {name: statistics.median(costs) for name, costs in taken.items()}

    def words(self, reading: Reading) -> str:
        return ", ".join(f"{cost:.0f} µs" for cost in reading.values())


def overtaking(length: int) -> str:
    """Name the number for a crowd of this length."""
    return f"past_{length}_us"
