"""Drain: how many waiting no-op jobs one worker process runs in a second.

All jobs wait before the worker starts. Time runs from the first job's handler to the last one's, so
neither the start of an interpreter nor the first connection counts; the worker itself counts distinct
jobs (`programs/tally.py`).
"""

from benchmarks.figures.figure import Figure, Reading
from benchmarks.scale import Scale
from benchmarks.stand import Stands
from benchmarks.systems.system import System

_FILL_SECONDS = 300.0
_DRAIN_SECONDS = 300.0


class Drain(Figure):
    name = "drain"

    def applies_to(self, system: System) -> bool:
        return system.runs_jobs

    def measure(self, system: System, stands: Stands, scale: Scale) -> Reading:
        with system.at(stands) as stand:
            producer = stand.start(system.producer(stand))
            producer.ask({"do": "bulk" if system.bulk else "single", "jobs": scale.jobs}, _FILL_SECONDS)
            producer.kill()
            worker = stand.start(system.worker(stand), BENCH_JOBS=str(scale.jobs))
            done = worker.hear(_DRAIN_SECONDS, step=f"run {scale.jobs} jobs")
        return {"jobs_per_s": done["jobs"] / done["nanoseconds"] * 1e9}

    def words(self, reading: Reading) -> str:
        return f"{reading['jobs_per_s']:.0f} jobs/s"
