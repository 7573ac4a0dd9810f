"""The workers of one process, one for each queue: hired at the start or by a reload, ended together."""

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial
from typing import NamedTuple

import structlog

from maitred.cli.premises import Premises
from maitred.errors import UnknownQueue
from maitred.service.handlers import Handlers
from maitred.service.health import Health
from maitred.service.metrics import Metrics
from maitred.store.port import Stores
from maitred.worker import Worker

_log = structlog.get_logger()


class Making(NamedTuple):
    """What the workers of one process are made of; without premises none is made."""

    handlers: Mapping[str, Handlers]
    slots: int
    premises: Premises | None


class Crew:
    """Workers with the same number of slots each. `ended` is set when one of the first has ended by itself.

    One that was hired later and cannot work is told of; the others go on.
    """

    def __init__(self, stores: Stores, making: Making, metrics: Metrics) -> None:
        self.ended = asyncio.Event()
        self.making = making
        self._stores = stores
        self._workers: dict[str, Worker] = {}
        self._working: dict[str, asyncio.Task[None]] = {}
        self._late: set[str] = set()
        self._closed = False
        self._metrics = metrics.runs
        metrics.runs.watch(self.health)

    @property
    def queues(self) -> list[str]:
        """The queues that have a worker."""
        return list(self._workers)

    def health(self) -> list[Health]:
        """Tell how each worker is; may be called from another thread."""
        return [worker.health() for worker in list(self._workers.values())]

    async def gather(self, queues: Iterable[str]) -> None:
        """Make a worker for each queue, of all if none is named, for `work` to set going.

        `UnknownQueue` if nobody configured one that is named, or one that an app has handlers for.
        """
        known, named = await self._stores.names(), list(queues)
        for name in (*named, *self.making.handlers):
            if name not in known:
                raise UnknownQueue(name)
        for name in named or known:
            self._make(name)

    def work(self) -> None:
        """Set those going who do not work yet."""
        for name, worker in self._workers.items():
            if name not in self._working:
                self._working[name] = task = asyncio.create_task(worker.run())
                task.add_done_callback(partial(self._over, name))

    def hire(self, queues: Iterable[str]) -> list[str]:
        """Set workers going for those queues that have none; give their names."""
        if self._closed or not self.making.slots:
            return []
        new = [name for name in queues if name not in self._workers]
        for name in new:
            self._late.add(name)
            self._make(name)
        self.work()
        return new

    def look_again(self) -> None:
        """Let each worker look at its queue's settings now."""
        for worker in self._workers.values():
            worker.look_again()

    def hurry(self) -> None:
        """Let nobody wait for running work any more."""
        for worker in self._workers.values():
            worker.hurry()

    async def close(self) -> None:
        """Let each worker end in order, also when another has failed; raise what that raised."""
        self._closed = True
        for worker in self._workers.values():
            worker.stop()
        # Those who fail meanwhile are taken from the list.
        working = dict(self._working)
        ends = await asyncio.gather(*working.values(), return_exceptions=True)
        for name, end in zip(working, ends, strict=True):
            if isinstance(end, BaseException) and name not in self._late:
                raise end

    def _make(self, name: str) -> None:
        handlers, slots, premises = self.making
        self._workers[name] = Worker(
            self._stores.queue(name),
            handlers.get(name, Handlers()),
            slots,
            host=premises and premises.host,
            visible=premises.visible if premises else (),
            metrics=self._metrics,
        )

    def _over(self, name: str, task: "asyncio.Task[None]") -> None:
        if name not in self._late:
            self.ended.set()
        elif not task.cancelled() and (error := task.exception()):
            _log.error("a worker cannot work", queue=name, error=str(error))
            # The next reload may have better settings for it.
            del self._workers[name], self._working[name]
