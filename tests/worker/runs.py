"""A run outside of a worker, for what only looks at its start."""

from maitred.core.job import Start
from maitred.store.memory import MemoryStores
from maitred.worker.outcome import TIME_LIMIT
from maitred.worker.reach import Reach
from maitred.worker.run import Run
from maitred.worker.voice import Voice

LIMIT = 1 << 20


def a_voice() -> Voice:
    """Give a voice that a queue in memory hears."""
    return Voice(MemoryStores().queue("default"), "w", Reach("w"), lambda _: None, limit=lambda: LIMIT)


def a_run(start: Start) -> Run:
    """Give the run of a start."""
    return Run(start, start.duration, TIME_LIMIT, 0.0, a_voice())
