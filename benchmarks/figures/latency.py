"""Start latency: from the call that enqueues a job to the first line of its handler, on an idle worker.

The job carries the time of the call, the handler subtracts it; both read the kernel's monotonic clock.
The next job is sent only after the last one started and a pause of random length, so the worker is idle
again and no system's polling interval can fall into step with us.
"""

import random
import time

from benchmarks.figures.figure import Figure, Reading
from benchmarks.scale import Scale
from benchmarks.stand import Stands
from benchmarks.systems.system import System

_SECONDS = 30.0
_WARM = 20
_SETTLE = 0.5
_PAUSE = (0.010, 0.030)


class Latency(Figure):
    name = "latency"

    def applies_to(self, system: System) -> bool:
        del system
        return True

    def measure(self, system: System, stands: Stands, scale: Scale) -> Reading:
        dice = random.Random(0)
        taken: list[float] = []
        with system.at(stands) as stand:
            worker = stand.start(system.worker(stand))
            producer = stand.start(system.producer(stand))
            time.sleep(_SETTLE)
            for _ in range(_WARM + scale.latency_samples):
                producer.tell({"do": "stamp"})
                taken.append(worker.hear(_SECONDS, step="start a job")["nanoseconds"] / 1e6)
                time.sleep(dice.uniform(*_PAUSE))
        taken = sorted(taken[_WARM:])
        return {"p50_ms": percentile(taken, 50), "p99_ms": percentile(taken, 99)}

    def words(self, reading: Reading) -> str:
        return f"p50 {reading['p50_ms']:.2f} ms, p99 {reading['p99_ms']:.2f} ms"


def percentile(ordered: list[float], percent: float) -> float:
    """Give the smallest value that at least `percent` of an ordered list do not exceed."""
    return ordered[max(0, -int(-len(ordered) * percent // 100) - 1)]
