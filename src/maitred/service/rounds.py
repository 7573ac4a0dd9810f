"""Rounds: how whoever works for a queue in a server looks for work, does several things at once, and ends."""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any

import structlog

from maitred.errors import StoreUnavailable

SAFETY_NET = 1.0

_log = structlog.get_logger()


class Rounds(ABC):
    """Somebody who works for a queue; `run` it in a task, and cancel that to stop it.

    `wake` it when there may be work; it looks every second anyway, unless it is `called` whenever there may
    be some. What it does in a round is in `_begin`, which tells whether there may be more.
    """

    def __init__(self, queue: str, safety_net: float = SAFETY_NET) -> None:
        self._queue = queue
        self._safety_net = safety_net
        self._news = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._trouble = ""

    def wake(self) -> None:
        """Look for work now."""
        self._news.set()

    async def run(self, *, called: bool = False) -> None:
        """Work until cancelled; what is under way then is left to whoever comes next."""
        try:
            while True:
                self._news.clear()
                if not await self._begin():
                    # Not wait_for: before Python 3.12 it may swallow the cancel that comes with the news.
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(None if called else self._safety_net):
                            await self._news.wait()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    @abstractmethod
    async def _begin(self) -> bool:
        """Begin what there is to do and a hand is free for; tell whether to look again at once."""

    def _take_on(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Do this beside what is under way, and look for more when it is done."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            _log.error("work for a queue broke off", queue=self._queue, exc_info=error)
        self._news.set()

    def _tell(self, what: str, error: Exception) -> None:
        """Say what is wrong once, not every second. Of a store that is away, the ticker says so already."""
        if self._trouble != str(error) and not isinstance(error, StoreUnavailable):
            _log.warning(what, queue=self._queue, error=str(error))
        self._trouble = str(error)
