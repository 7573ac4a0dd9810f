"""The staff of a server: of each kind one for each queue, begun when there may be work for it."""

import asyncio
from collections.abc import Callable
from functools import partial

from maitred.core.events import BatchChanged, Event, Noticed
from maitred.service.bell import Bell
from maitred.service.clerk import Clerk
from maitred.service.courier import Courier
from maitred.service.delivery import Postman
from maitred.service.foresights import Foresights
from maitred.service.per_queue import begin, end, for_each
from maitred.service.receivers import Receivers
from maitred.service.rounds import Rounds
from maitred.store.port import Store, Stores


class Staff:
    """All of one kind; `run` it in a task, and cancel that to stop it.

    `hire` makes one for a queue. Where there are `foresights`, it is woken by events of the kind that it
    `hears` in its queue, and by the ticker while there is work left, so none looks by itself. Else each does.
    """

    def __init__(
        self,
        stores: Stores,
        hire: Callable[[Store], Rounds],
        hears: type[Event],
        foresights: Foresights | None = None,
    ) -> None:
        self._stores = stores
        self._hire = hire
        self._hears = hears
        self._foresights = foresights
        self._queues: dict[str, tuple[Rounds, asyncio.Task[None]]] = {}
        self._listening: set[str] = set()
        self._running = False

    async def run(self) -> None:
        """Work for all queues until cancelled."""
        self._running = True
        try:
            await for_each(self._stores, self._see_to)
        finally:
            self._running = False
            await end(task for _, task in self._queues.values())

    async def _see_to(self, queue: str) -> None:
        if self._foresights is None:
            self._of(queue)
        elif queue not in self._listening and (foresight := self._foresights.of(queue)):
            self._listening.add(queue)
            foresight.listeners.append(Bell(partial(self.wake, queue), self._hears))

    def wake(self, queue: str) -> None:
        """Look for work in a queue now."""
        if self._running:
            self._of(queue).wake()

    def _of(self, queue: str) -> Rounds:
        known = self._queues.get(queue)
        if known and not known[1].done():
            return known[0]
        # Also in the place of one that broke off, which was told: its work is still there.
        one = self._hire(self._stores.queue(queue))
        work = one.run(called=self._foresights is not None)
        self._queues[queue] = (one, begin(type(one).__name__.lower(), work))
        return one


def clerks(stores: Stores, owner: str, postman: Postman, foresights: Foresights | None = None) -> Staff:
    """Give those who expand, report and send batches; `owner` names the server in the locks that it has."""
    return Staff(stores, lambda store: Clerk(store, owner, postman), BatchChanged, foresights)


def couriers(stores: Stores, owner: str, postman: Postman, foresights: Foresights | None = None) -> Staff:
    """Give those who tell submitters what has become of their jobs."""
    receivers = Receivers()
    return Staff(stores, lambda store: Courier(store, owner, postman, receivers), Noticed, foresights)
