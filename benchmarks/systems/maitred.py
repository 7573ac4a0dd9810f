"""Maitred itself: one worker process with 128 slots, what `maitred work --slots 128` runs."""

import asyncio
import importlib.metadata
import sys

from benchmarks.program import Command
from benchmarks.stand import Stand
from benchmarks.systems.system import System, python_program
from maitred.core.settings import Settings
from maitred.store.connect import connect


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

    def set_up(self, stand: Stand) -> None:
        asyncio.run(configure(stand.store.url, Settings()))

    def producer(self, stand: Stand) -> Command:
        return python_program("maitred", "producer", stand)

    def worker(self, stand: Stand) -> Command:
        options = ["--store", stand.store.url, "--app", "benchmarks.programs.maitred_app", "--slots", "128"]
        return Command(
            name="maitred-worker",
            # The command as a program types it, whether or not its script is installed.
            argv=[sys.executable, "-c", "from maitred.cli import main; main()", "work", *options],
            environment={"BENCH_STORE": str(stand.store.socket), "BENCH_ROLE": "worker"},
        )

    def probe(self, stand: Stand) -> Command:
        return python_program("maitred", "probe", stand)


async def configure(url: str, settings: Settings) -> None:
    """Make the queue, as `maitred serve` does at its start."""
    stores = connect(url)
    await stores.queue("bench").configure(settings)
    await stores.close()
