"""Receivers: how many messages are on the way to each of them at once.

One that hangs keeps what was sent to it for as long as a try may take. So only so many are on the way to one
receiver, others wait for their turn, and not for long: where turns do not come round, whatever else is for
that receiver is put aside at once, and those who answer are not kept waiting.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

PER_RECEIVER = 8
LONGEST_TURN = 1.0


class _Line:
    """Those who want to send to one receiver."""

    def __init__(self, at_once: int) -> None:
        self.turns = asyncio.Semaphore(at_once)
        self.count = 0
        self.jammed = False


class Receivers:
    """All receivers that something is on the way to, by host and port."""

    def __init__(self, at_once: int = PER_RECEIVER, longest_turn: float = LONGEST_TURN) -> None:
        self._at_once = at_once
        self._longest_turn = longest_turn
        self._lines: dict[str, _Line] = {}

    @contextlib.asynccontextmanager
    async def turn(self, url: str) -> AsyncIterator[bool]:
        """Wait for a turn to send to an address; False if there is none soon."""
        host = urlsplit(url).netloc.rpartition("@")[2].lower()
        line = self._lines.setdefault(host, _Line(self._at_once))
        line.count += 1
        try:
            if not await self._comes(line):
                yield False
                return
            try:
                yield True
            finally:
                line.jammed = False
                line.turns.release()
        finally:
            line.count -= 1
            if not line.count:
                del self._lines[host]

    async def _comes(self, line: _Line) -> bool:
        if line.jammed and line.turns.locked():
            return False
        try:
            async with asyncio.timeout(self._longest_turn):
                return await line.turns.acquire()
        except TimeoutError:
            line.jammed = True
            return False
