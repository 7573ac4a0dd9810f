"""What a watcher is told: events in order, fetched as they come, until nothing more is told."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from maitred.service.document import Document


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

    async def next(self, timeout: float) -> Told | None:
        """Wait for the next event; None if there is none for so long, or no more at all (`ended`)."""
        if not self._told and not self.closed:
            self._rung.clear()
            try:
                async with asyncio.timeout(timeout):
                    await self._rung.wait()
            except TimeoutError:
                return None
        return self._told.popleft() if self._told else None

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
            self._rung.set()
