"""The clerks of a server: one for each queue, started when the queue is first seen."""

import asyncio
import contextlib

import structlog

from maitred.errors import StoreError
from maitred.service.clerk import Clerk
from maitred.store.port import Stores

LOOK_EVERY = 5.0

_log = structlog.get_logger()


class Clerks:
    """What a server does for batches; `run` it in a task, and cancel that to stop it.

    `owner` names the server in the locks that it has.
    """

    def __init__(self, stores: Stores, owner: str) -> None:
        self._stores = stores
        self._owner = owner
        self._queues: dict[str, tuple[Clerk, asyncio.Task[None]]] = {}
        self._running = False

    async def run(self) -> None:
        """Work for all queues until cancelled."""
        self._running = True
        try:
            while True:
                with contextlib.suppress(StoreError):
                    for name in await self._stores.names():
                        self._of(name)
                await asyncio.sleep(LOOK_EVERY)
        finally:
            self._running = False
            tasks = [task for _, task in self._queues.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def wake(self, queue: str) -> None:
        """Look at the batches of a queue now: one was submitted, or changed."""
        if self._running:
            self._of(queue).wake()

    def _of(self, queue: str) -> Clerk:
        if queue not in self._queues:
            clerk = Clerk(self._stores.queue(queue), self._owner)
            task = asyncio.create_task(clerk.run())
            task.add_done_callback(_tell_of_bug)
            self._queues[queue] = (clerk, task)
        return self._queues[queue][0]


def _tell_of_bug(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        _log.error("a clerk has ended", exc_info=error)
