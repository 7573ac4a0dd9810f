"""Memory: how many bytes of the store one waiting job takes, with a configuration of a kilobyte.

The difference between few waiting jobs and many, so that what the system keeps once (scripts, settings)
does not count.
"""

from benchmarks.figures.figure import Figure, Reading
from benchmarks.scale import Scale
from benchmarks.stand import Stands
from benchmarks.systems.system import System

_SECONDS = 300.0
_FEW = 1_000


class Memory(Figure):
    name = "memory"
    every_round = False

    def applies_to(self, system: System) -> bool:
        return system.runs_jobs

    def measure(self, system: System, stands: Stands, scale: Scale) -> Reading:
        way = "bulk" if system.bulk else "single"
        with system.at(stands) as stand:
            used = []
            producer = stand.start(system.producer(stand))
            for jobs in (_FEW, scale.memory_jobs):
                producer.ask({"do": way, "jobs": jobs, "payload": scale.memory_payload}, _SECONDS)
                used.append(stand.store.used_memory_at_rest())
        return {"bytes_per_job": (used[1] - used[0]) / scale.memory_jobs}

    def words(self, reading: Reading) -> str:
        return f"{reading['bytes_per_job']:.0f} bytes per waiting job"
