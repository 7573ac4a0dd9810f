"""What a watcher is told: events in order, fetched as they come, until nothing more is told.

A watcher that falls far behind is told nothing more: it gets what waits for it, and the events end. It can
come back and go on after the last one that it had. What it is told at the beginning does not count.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from maitred.service.document import Document

# How far a watcher may fall behind, in events and in characters of output.
MOST_EVENTS, MOST_TEXT = 10_000, 4 << 20


class Told(NamedTuple):
    """One event for a watcher; `id` where it can go on from there."""

    event: str
    data: Document
    id: str | None = None


@dataclass(eq=False, kw_only=True)
class Telling:
    """The events for one watcher; whoever has it calls `leave` in the end."""

    closed: bool = False
    leave: Callable[[], None] = lambda: None
    _told: deque[Told] = field(default_factory=deque)
    _rung: asyncio.Event = field(default_factory=asyncio.Event)
    _fetched: bool = False
    _text: int = 0

    async def next(self, timeout: float) -> Told | None:
        """Wait for the next event; None if there is none for so long, or no more at all (`ended`)."""
        if not self._told and not self.closed:
            self._rung.clear()
            try:
                async with asyncio.timeout(timeout):
                    await self._rung.wait()
            except TimeoutError:
                return None
        if not self._told:
            return None
        told = self._told.popleft()
        self._fetched = True
        self._text -= _text_in(told)
        return told

    @property
    def ended(self) -> bool:
        """Tell whether everything was told that there will be."""
        return self.closed and not self._told

    def close(self) -> None:
        """Tell nothing more."""
        self.closed = True
        self._rung.set()

    def _tell(self, told: Told) -> None:
        if not self.closed:
            self._told.append(told)
            self._text += _text_in(told)
            self._rung.set()
            if self._fetched and (len(self._told) > MOST_EVENTS or self._text > MOST_TEXT):
                self.close()


def _text_in(told: Told) -> int:
    return len(told.data.get("text", ""))
