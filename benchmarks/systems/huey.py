"""huey: Python, at most once, a blocking pop of a list.

Two to four threads were best; with eight or more the interpreter's lock costs more than they bring, and
thirty-two greenlets drain about as much as four threads.
"""

from benchmarks.environments import python_peers, python_version
from benchmarks.program import Command
from benchmarks.stand import Stand
from benchmarks.systems.system import System, python_program


class Huey(System):
    name = "huey"
    settings = "1 process, 4 threads, blocking, no results"

    def prepare(self) -> None:
        python_peers()

    def version(self) -> str:
        return python_version("huey")

    def producer(self, stand: Stand) -> Command:
        return python_program("huey", "producer", stand, python=python_peers())

    def worker(self, stand: Stand) -> Command:
        return python_program("huey", "worker", stand, python=python_peers(), BENCH_THREADS="4")
