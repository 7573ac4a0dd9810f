"""What a watcher is told: events in order, fetched as they come, until nothing more is told.

What waits for a reader is bounded. When a reader is so slow that there is more, nothing more is told to it:
its stream ends after what waits already, and it goes on from there when it comes back.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from maitred.service.document import Document
from maitred.wire import encode_json

# How much may wait for one reader, in bytes; what is told at the opening may be as much as there is.
MOST_UNREAD = 1 << 20
# What an event costs beside its data.
OVERHEAD = 256


class Told:
    """One event for a watcher; `id` where it can go on from there. It is written once for all readers."""

    __slots__ = ("_body", "data", "event", "id")

    def __init__(self, event: str, data: Document, id: str | None = None) -> None:
        self.event, self.data, self.id = event, data, id
        self._body: bytes | None = None

    @property
    def body(self) -> bytes:
        """The data as JSON."""
        if self._body is None:
            self._body = encode_json(self.data)
        return self._body

    @property
    def size(self) -> int:
        """How much it counts while it waits for its reader."""
        return len(self.body) + OVERHEAD

    def named(self, id: str) -> "Told":
        """Give the same event with an id."""
        told = Told(self.event, self.data, id)
        told._body = self.body
        return told


@dataclass(eq=False, kw_only=True)
class Telling:
    """The events for one watcher; whoever has it calls `leave` in the end."""

    closed: bool = False
    leave: Callable[[], None] = lambda: None
    unread: int = 0
    _most: int | None = None
    _told: deque[Told] = field(default_factory=deque)
    _rung: asyncio.Event = field(default_factory=asyncio.Event)

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
        self.unread -= told.size
        return told

    @property
    def ended(self) -> bool:
        """Tell whether everything was told that there will be."""
        return self.closed and not self._told

    def close(self) -> None:
        """Tell nothing more."""
        self.closed = True
        self._rung.set()

    def opened(self) -> None:
        """Bound what waits for the reader from now on."""
        self._most = self.unread + MOST_UNREAD

    def _tell(self, told: Told) -> None:
        if self.closed:
            return
        if self._most is not None and self.unread + told.size > self._most:
            self.close()
            return
        self.unread += told.size
        self._told.append(told)
        self._rung.set()

    def _take_back(self, event: str) -> None:
        """Leave the last event out if it is of this kind and was not fetched yet."""
        if self._told and self._told[-1].event == event:
            self.unread -= self._told.pop().size
