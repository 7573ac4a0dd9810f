"""The way to the store: it may be away at any time, and is asked until it answers."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from maitred.errors import StoreError

RETRY_FIRST, RETRY_LONGEST = 0.05, 2.0

_log = structlog.get_logger()
T = TypeVar("T")


class Reach:
    """The calls of one worker. `doubtful` is set when an answer was lost: it may have brought work.

    An outage is told once, whoever meets it, and so is its end.
    """

    def __init__(self, worker: str) -> None:
        self.doubtful = asyncio.Event()
        self.errands: set[asyncio.Task[None]] = set()
        self._worker = worker
        self._lost = False

    async def patiently(self, call: Callable[[], Awaitable[T]], healing: type[StoreError] = StoreError) -> T:
        """Call the store until it answers; raises errors that are not of the kind that heals by itself."""
        pause = RETRY_FIRST
        while True:
            try:
                return await call()
            except healing as error:
                self.note_lost(error)
                self.doubtful.set()
                await asyncio.sleep(pause)
                pause = min(pause * 2, RETRY_LONGEST)

    def send(self, errand: Awaitable[None]) -> None:
        """Let a call be made beside what goes on here; `errands` has it until it is done."""
        task = asyncio.ensure_future(errand)
        self.errands.add(task)
        task.add_done_callback(self.errands.discard)

    def note_lost(self, error: Exception) -> None:
        """Tell of an outage, unless it was told."""
        if not self._lost:
            said = str(error) or "no answer in time"
            _log.warning("the store does not answer", worker=self._worker, error=said)
        self._lost = True

    def note_found(self) -> None:
        """Tell that an outage is over."""
        if self._lost:
            _log.info("the store answers again", worker=self._worker)
        self._lost = False
