"""The bare list hand-off: not a queue, but the limit that every queue's start latency is read against."""

import importlib.metadata

from benchmarks.program import Command
from benchmarks.stand import Stand
from benchmarks.systems.system import System, python_program


class Bare(System):
    name = "bare"
    settings = "RPUSH to BLMPOP, redis-py"
    runs_jobs = False

    def version(self) -> str:
        return f"redis-py {importlib.metadata.version('redis')}"

    def producer(self, stand: Stand) -> Command:
        return python_program("bare", "producer", stand)

    def worker(self, stand: Stand) -> Command:
        return python_program("bare", "worker", stand)
