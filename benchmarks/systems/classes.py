"""Maitred with three duration classes: what the Floor costs beside the same queue with one.

A quarter of the jobs asks for each class and a quarter for none, so every cycle merges lanes, counts units of
each level and lists the elastic runs. The limits are wide enough for the jobs, as they are no-ops.
"""

import asyncio

from benchmarks.program import Command
from benchmarks.stand import Stand
from benchmarks.systems.maitred import Maitred, configure
from benchmarks.systems.system import python_program
from maitred.core.classes import PERCENT, DurationClass, Limit
from maitred.core.settings import SECOND, Settings

_CLASSES = (
    DurationClass("fast", 3 * SECOND),
    DurationClass("medium", 10 * SECOND, Limit(75 * PERCENT, percent=True)),
    DurationClass("slow", 30 * SECOND, Limit(50 * PERCENT, percent=True)),
)


class Classes(Maitred):
    name = "classes"
    settings = "maitred with three classes and elastic jobs, 1 process, 128 slots"
    figures = frozenset({"drain", "cycle"})

    def set_up(self, stand: Stand) -> None:
        asyncio.run(configure(stand.store.url, Settings(classes=_CLASSES)))

    def producer(self, stand: Stand) -> Command:
        return python_program("maitred", "producer", stand, BENCH_CLASSES="fast,medium,slow,")
