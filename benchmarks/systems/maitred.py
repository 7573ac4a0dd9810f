"""Maitred itself: one worker process with 128 slots, what `maitred work --slots 128` runs."""

import importlib.metadata

from benchmarks.program import Command
from benchmarks.stand import Stand
from benchmarks.systems.system import System, python_program


class Maitred(System):
    name = "maitred"
    settings = "1 process, 128 slots"
    bulk = True
    has_probe = True

    def version(self) -> str:
        try:
            return importlib.metadata.version("maitred")
        except importlib.metadata.PackageNotFoundError:
            return "from source"

    def producer(self, stand: Stand) -> Command:
        return python_program("maitred", "producer", stand)

    def worker(self, stand: Stand) -> Command:
        return python_program("maitred", "worker", stand)

    def probe(self, stand: Stand) -> Command:
        return python_program("maitred", "probe", stand)
