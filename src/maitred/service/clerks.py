"""The clerks of a server: one for each queue, started when the queue is first seen."""

import asyncio

from maitred.core.events import BatchChanged
from maitred.service.bell import Bell
from maitred.service.clerk import Clerk
from maitred.service.delivery import Postman
from maitred.service.foresights import Foresights
from maitred.service.per_queue import begin, end, for_each
from maitred.store.port import Stores


class Clerks:
    """What a server does for batches; `run` it in a task, and cancel that to stop it.

    `owner` names the server in the locks that it has. Where there are `foresights`, a clerk hears of it when
    a batch changes, and need not wait until it looks by itself.
    """

    def __init__(
        self, stores: Stores, owner: str, postman: Postman, foresights: Foresights | None = None
    ) -> None:
        self._stores = stores
        self._owner = owner
        self._postman = postman
        self._foresights = foresights
        self._queues: dict[str, tuple[Clerk, asyncio.Task[None]]] = {}
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
        self._of(queue)

    def wake(self, queue: str) -> None:
        """Look at the batches of a queue now: one was submitted, or changed."""
        if self._running:
            self._of(queue).wake()

    def _of(self, queue: str) -> Clerk:
        if queue not in self._queues:
            clerk = Clerk(self._stores.queue(queue), self._owner, self._postman)
            self._queues[queue] = (clerk, begin("clerk", clerk.run()))
            foresight = self._foresights.of(queue) if self._foresights else None
            if foresight is not None:
                foresight.listeners.append(Bell(clerk.wake, BatchChanged))
        return self._queues[queue][0]
