"""dramatiq: Python, threads, at least once, polling with back-off when idle.

Settings were chosen by measuring. Its default of two prefetched messages per thread makes eight threads
wait for the poll of every sixteen (2 000/s); `dramatiq_queue_prefetch=64`, its documented knob, doubles
that. More than a few threads lose to the interpreter's lock. With `--processes 2` it drains twice as much
on two cores, as others would; here every system has one worker process.
"""

from benchmarks.environments import python_peers, python_version
from benchmarks.program import Command
from benchmarks.stand import Stand
from benchmarks.systems.system import System, python_program


class Dramatiq(System):
    name = "dramatiq"
    settings = "1 process, 4 threads, prefetch 64"

    def prepare(self) -> None:
        python_peers()

    def version(self) -> str:
        return python_version("dramatiq")

    def producer(self, stand: Stand) -> Command:
        return python_program("dramatiq", "producer", stand, python=python_peers())

    def worker(self, stand: Stand) -> Command:
        return python_program(
            "dramatiq",
            "worker",
            stand,
            python=python_peers(),
            BENCH_THREADS="4",
            dramatiq_queue_prefetch="64",
        )
