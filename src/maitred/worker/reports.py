"""What a worker tells the store about work that is over: how it ended, or that somebody else should do it."""

import asyncio
from collections.abc import Callable

from maitred.core.job import Finish, Lease, Shift
from maitred.store.port import Store
from maitred.worker.reach import Reach

BATCH = 64


class Reports:
    """What is still to be said. What ends in one turn of the loop is said together.

    Each answer brings what comes next, and goes to `heed`.
    """

    def __init__(self, store: Store, worker: str, reach: Reach, heed: Callable[[Shift], None]) -> None:
        self.worker = worker
        self._store, self._reach, self._heed = store, reach, heed
        self._unsaid: dict[Lease, Finish] = {}
        self._saying: dict[Lease, Finish] = {}
        self._flush_due = False

    @property
    def leases(self) -> list[Lease]:
        """What the store may not have heard of yet."""
        return [*self._unsaid, *self._saying]

    def has(self, lease: Lease) -> bool:
        """Whether its end is still to be said or being said."""
        return lease in self._unsaid or lease in self._saying

    def tell(self, finish: Finish) -> None:
        """Tell how a run ended, soon."""
        self._unsaid[finish.lease] = finish
        if len(self._unsaid) >= BATCH:
            self.flush()
        elif not self._flush_due:
            self._flush_due = True
            asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        """Send off all that is unsaid."""
        self._flush_due = False
        while self._unsaid:
            batch = dict(list(self._unsaid.items())[:BATCH])
            for lease in batch:
                del self._unsaid[lease]
            self._saying |= batch
            self._reach.send(self._say(batch))

    async def _say(self, batch: dict[Lease, Finish]) -> None:
        """Tell the store what ended, until it has heard; what comes next starts at once."""
        results = list(batch.values())
        shift = await self._reach.patiently(lambda: self._store.finish(self.worker, results))
        for lease in batch:
            self._saying.pop(lease, None)
        self._heed(shift)

    async def hand_back(self, leases: list[Lease]) -> None:
        """Put jobs back to the front of the line, until the store has heard."""
        self._heed(await self._reach.patiently(lambda: self._store.hand_back(self.worker, leases)))
