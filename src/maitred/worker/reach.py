"""The way to the store: it may be away at any time, and is asked until it answers."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from maitred.core.settings import SECOND
from maitred.errors import StoreError

RETRY_FIRST, RETRY_LONGEST = 0.05, 2.0

_log = structlog.get_logger()
T = TypeVar("T")


class Reach:
    """The calls of one worker. `doubtful` is set when an answer was lost: it may have brought work.

    An outage is told once, whoever meets it, and so is its end. `away_since` is when it began, in
    microseconds, None if there is none. `taking_at` is when it last took or parked, by the local clock.
    """

    def __init__(self, worker: str) -> None:
        self.doubtful = asyncio.Event()
        self.errands: set[asyncio.Task[None]] = set()
        self.away_since: int | None = None
        self.taking_at: float | None = None
        self._worker = worker
        self._found_at = 0.0

    async def patiently(self, call: Callable[[], Awaitable[T]], healing: type[StoreError] = StoreError) -> T:
        """Call the store until it answers; raises errors that are not of the kind that heals by itself."""
        pause = RETRY_FIRST
        while True:
            begun = time.monotonic()
            try:
                answer = await call()
            except healing as error:
                self.note_lost(error, begun)
                self.doubtful.set()
                await asyncio.sleep(jittered(pause))
                pause = min(pause * 2, RETRY_LONGEST)
            else:
                self.note_found()
                return answer

    def send(self, errand: Awaitable[None]) -> None:
        """Let a call be made beside what goes on here; `errands` has it until it is done."""
        task = asyncio.ensure_future(errand)
        self.errands.add(task)
        task.add_done_callback(self.errands.discard)

    def note_taking(self) -> None:
        """Note that the worker has taken, or parked and was answered."""
        self.taking_at = time.monotonic()

    def note_lost(self, error: Exception, begun: float) -> None:
        """Tell of an outage that a call met which had begun then, unless that is told, or over already."""
        if self.away_since is None and begun >= self._found_at:
            said = str(error) or "no answer in time"
            _log.warning("the store does not answer", worker=self._worker, error=said)
            self.away_since = round(time.time() * SECOND)

    def note_found(self) -> None:
        """Tell that an outage is over."""
        if self.away_since is not None:
            _log.info("the store answers again", worker=self._worker)
            self.away_since, self._found_at = None, time.monotonic()


def jittered(pause: float) -> float:
    """Give from half to all of a pause: workers that lost a store together do not come back together."""
    return random.uniform(pause / 2, pause)  # noqa: S311 - no secret
