"""The foresights of a server: one for each queue, started when the queue is first seen or asked for."""

import asyncio
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, NamedTuple

from maitred.errors import StoreUnavailable
from maitred.service.batch_watch import BatchWatchers
from maitred.service.caller import Caller
from maitred.service.everything import Everything, EverythingWatch, Teller
from maitred.service.foresight import Foresight
from maitred.service.per_queue import begin, end, for_each
from maitred.service.watchers import Watchers
from maitred.store.ledgered import LedgeredStore
from maitred.store.port import Stores

if TYPE_CHECKING:
    from maitred.service.metrics.tally import Tallies


DEAF = "this server does not listen to the store"


class Lookout(NamedTuple):
    """What looks out for one queue."""

    foresight: Foresight
    jobs: Watchers
    batches: BatchWatchers
    teller: Teller


class Foresights:
    """What a server foresees, and who watches; `run` it in a task, and cancel that to stop it.

    Until it runs nothing is foreseen, and nobody can watch. What is heard is counted in `tallies`, where they
    are set before it runs.
    """

    def __init__(self, stores: Stores, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stores = stores
        self._clock = clock
        self._queues: dict[str, Lookout] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._running = False
        self.everything = Everything()
        self.tallies: Tallies | None = None

    async def run(self) -> None:
        """Foresee for all queues until cancelled."""
        self._running = True
        try:
            await for_each(self._stores, self._see_to)
        finally:
            self.close()
            await end(self._tasks)

    async def _see_to(self, queue: str) -> None:
        self.of(queue)

    def close(self) -> None:
        """End all watches and begin no others; whoever watches may go on at another server."""
        self._running = False
        for lookout in self._queues.values():
            lookout.jobs.close()
            lookout.batches.close()
        self.everything.close()

    def lookouts(self) -> dict[str, Lookout]:
        """Give what looks out for each queue that was seen."""
        return dict(self._queues)

    async def watch_everything(
        self,
        caller: Caller,
        last: str | None,
        queues: Collection[str] | None,
        wanted: Collection[str] | None,
    ) -> EverythingWatch:
        """Let somebody watch all queues that there are; `StoreUnavailable` while nobody can."""
        for queue in await self._stores.names():
            self._lookout(queue)
        if not self._running:
            raise StoreUnavailable(DEAF)
        return self.everything.open(caller, last, queues=queues, wanted=wanted)

    def of(self, queue: str) -> Foresight | None:
        """Give the foresight of a queue that exists; None while nothing is foreseen."""
        lookout = self._lookout(queue)
        return lookout and lookout.foresight

    def watchers(self, queue: str) -> Watchers | None:
        """Give those who watch jobs of a queue that exists; None while nobody can."""
        lookout = self._lookout(queue)
        return lookout and lookout.jobs

    def batch_watchers(self, queue: str) -> BatchWatchers | None:
        """Give those who watch batches of a queue that exists; None while nobody can."""
        lookout = self._lookout(queue)
        return lookout and lookout.batches

    def _lookout(self, queue: str) -> Lookout | None:
        if not self._running:
            return None
        if queue not in self._queues:
            store = self._stores.queue(queue)
            tally = self.tallies.of(queue) if self.tallies else None
            foresight = Foresight(store, clock=self._clock, tally=tally)
            teller = Teller(store, foresight)
            lookout = Lookout(foresight, Watchers(store, foresight), BatchWatchers(store, foresight), teller)
            self._queues[queue] = lookout
            self.everything.joined(queue, teller)
            if isinstance(store, LedgeredStore):
                store.on_batch(lookout.batches.touch)
            self._tasks += [begin("lookout", part.run()) for part in lookout]
        return self._queues[queue]
