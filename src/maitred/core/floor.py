"""The Floor: which worker has a slot for a job.

A worker announces how many slots it has and what it serves, and holds them while it renews its lease. A slot
is taken from the start of a job until the worker confirms that it ended, also where the job was deleted or
cancelled in between.
"""

from dataclasses import dataclass, field

# What a lost worker held comes back in one step, which must be short.
MOST_SLOTS = 1024


@dataclass(slots=True)
class Hold:
    """One lease: who may write about a job. `number` tells in which order jobs started."""

    record: int
    token: bytes
    start: int
    number: int
    confirmed: bool = False
    stopping: str = ""


@dataclass(slots=True)
class Worker:
    """A worker as the store knows it."""

    name: str
    slots: int
    serves: frozenset[str]
    lease_end: int
    draining: bool = False
    holds: dict[int, Hold] = field(default_factory=dict)

    @property
    def free(self) -> int:
        """How many more jobs it may be given."""
        return 0 if self.draining else max(0, self.slots - len(self.holds))


class Floor:
    """All workers of a queue, and every need that any worker ever announced."""

    def __init__(self) -> None:
        """Begin with no worker."""
        self.workers: dict[str, Worker] = {}
        self.announced: set[str] = set()

    def pick(self, need: str, caller: str | None) -> Worker | None:
        """Choose who runs a job with this need: the caller if it can, else the one with most free slots."""
        able = [worker for worker in self.workers.values() if worker.free and need in worker.serves]
        for worker in able:
            if worker.name == caller:
                return worker
        return max(able, key=lambda worker: (worker.free, worker.name.encode()), default=None)

    def drop(self, worker: Worker, record: int) -> None:
        """Give the slot back, once; a draining worker with nothing left in hand is gone."""
        del worker.holds[record]
        if worker.draining and not worker.holds:
            del self.workers[worker.name]
