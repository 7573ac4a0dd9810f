"""Enqueue: how many jobs one process submits in a second, one by one or in bulk.

Nothing works on them meanwhile. Systems without a call for many have no bulk figure.
"""

from benchmarks.figures.figure import Figure, Reading
from benchmarks.scale import Scale
from benchmarks.stand import Stands
from benchmarks.systems.system import System

_SECONDS = 300.0


class Enqueue(Figure):
    def applies_to(self, system: System) -> bool:
        return system.runs_jobs

    def measure(self, system: System, stands: Stands, scale: Scale) -> Reading:
        jobs = self._jobs(scale)
        with system.at(stands) as stand:
            producer = stand.start(system.producer(stand))
            took = producer.ask({"do": self.name, "jobs": jobs, "warm": scale.warm_jobs}, _SECONDS)
        return {"jobs_per_s": jobs / took["nanoseconds"] * 1e9}

    def words(self, reading: Reading) -> str:
        return f"{reading['jobs_per_s']:.0f} jobs/s"

    def _jobs(self, scale: Scale) -> int:
        raise NotImplementedError


class Single(Enqueue):
    name = "single"

    def _jobs(self, scale: Scale) -> int:
        return scale.single_jobs


class Bulk(Enqueue):
    name = "bulk"

    def applies_to(self, system: System) -> bool:
        return system.runs_jobs and system.bulk

    def _jobs(self, scale: Scale) -> int:
        return scale.jobs
