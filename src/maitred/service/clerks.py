"""The clerks of a server: one for each queue, started when the queue is first seen."""

import asyncio
import contextlib
from collections.abc import Sequence

import structlog

from maitred.core.events import BatchChanged, Entry
from maitred.errors import StoreError
from maitred.service.clerk import Clerk
from maitred.service.foresights import Foresights
from maitred.store.port import Stores

LOOK_EVERY = 5.0
SHORTLY = 0.05

_log = structlog.get_logger()


class Bell:
    """Wakes a clerk shortly after a batch changed, once for all changes meanwhile: there may be work."""

    def __init__(self, clerk: Clerk) -> None:
        self._clerk = clerk
        self._pulled = False

    def hear(self, entries: Sequence[Entry]) -> None:
        """Hear what happened in the queue."""
        if any(isinstance(event, BatchChanged) for entry in entries for event in entry.events):
            self._pull()

    def missed(self) -> None:
        """Hear that something was missed."""
        self._pull()

    def _pull(self) -> None:
        if not self._pulled:
            self._pulled = True
            asyncio.get_running_loop().call_later(SHORTLY, self._ring)

    def _ring(self) -> None:
        self._pulled = False
        self._clerk.wake()


class Clerks:
    """What a server does for batches; `run` it in a task, and cancel that to stop it.

    `owner` names the server in the locks that it has. Where there are `foresights`, a clerk hears of it when
    a batch changes, and need not wait until it looks by itself.
    """

    def __init__(self, stores: Stores, owner: str, foresights: Foresights | None = None) -> None:
        self._stores = stores
        self._owner = owner
        self._foresights = foresights
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
            foresight = self._foresights.of(queue) if self._foresights else None
            if foresight is not None:
                foresight.listeners.append(Bell(clerk))
        return self._queues[queue][0]


def _tell_of_bug(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        _log.error("a clerk has ended", exc_info=error)
