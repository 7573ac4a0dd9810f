"""Tells runs that their time is over.

Each run has a limit of its own, which may be lowered while it runs. One timer rings for the first of them: a
timer for each would cost more than all else that is done for a short job. When it rings it looks at all; a
worker has few slots, and most runs have ended long before. So a run that ends in time costs two steps in a
set, and the timer rings once in a while for a run that is gone.
"""

import asyncio
import time
from typing import Protocol

NEVER = float("inf")
SHORTEST = 0.001


class Limited(Protocol):
    """Something whose time is over at a moment of the local clock."""

    at: float

    def late(self) -> None:
        """Hear that the moment has come."""


class Deadlines:
    """The runs of one worker that are under a limit."""

    def __init__(self) -> None:
        self._watched: set[Limited] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = NEVER

    def watch(self, run: Limited) -> None:
        """Tell this run when it is late, once; to be called again when its moment has come forward."""
        self._watched.add(run)
        if run.at < self._rings_at:
            self._ring_at(run.at)

    def drop(self, run: Limited) -> None:
        """Watch it no more."""
        self._watched.discard(run)

    def close(self) -> None:
        """Watch nobody any more."""
        self._watched.clear()
        self._ring_at(NEVER)

    def _look(self) -> None:
        now = time.monotonic()
        late = [run for run in self._watched if run.at <= now]
        self._watched.difference_update(late)
        self._ring_at(min((run.at for run in self._watched), default=NEVER))
        for run in late:
            run.late()

    def _ring_at(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._rings_at = at
        if at < NEVER:
            # A loop may round to the millisecond, and would spin for what is shorter.
            wait = max(SHORTEST, at - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(wait, self._look)
