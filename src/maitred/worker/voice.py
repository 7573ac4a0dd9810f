"""What the runs of a worker say while they go on: gathered, and told to the store a few times a second.

The first word goes off at once; what is said while a call is under way, or shortly after, goes with the next
one, whoever says it. So a job that prints without end costs the store no more calls than one that is slow.
What is unsaid at the end of a run goes with its end.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable

from maitred.core.job import Lease
from maitred.core.output import Artifact, Part, Saying, Stream
from maitred.errors import LeaseLost
from maitred.store.port import Store
from maitred.worker.reach import Reach

# The time between two calls, and between two that a person at a terminal waits for.
PAUSE, SHORT_PAUSE = 0.2, 0.01
PART_LIMIT, SMALL_PART = 1 << 16, 1 << 10
CALL_LIMIT = 1 << 20
_HURRIED: tuple[Stream, ...] = ("tty", "control")
_TEXT: tuple[Stream, ...] = ("stdout", "stderr", "log")


class Words:
    """What one run has said and nobody was told yet; `told` counts the parts before.

    Of what a handler says, so many bytes are told and no more; the end tells how many were cut.
    """

    def __init__(self, limit: int) -> None:
        self.told = 0
        self._limit, self._cut = limit, 0
        # The oldest part goes when there is too much. If one were as large as the limit, all would go.
        self._part = min(PART_LIMIT, max(limit // 8, SMALL_PART))
        self._parts: list[tuple[Stream, int, bytearray]] = []
        self._rest: dict[Stream, bytes] = {}

    def __bool__(self) -> bool:
        return bool(self._parts)

    @property
    def open(self) -> bool:
        """Whether there is anything yet to be told, be it half a character."""
        return bool(self._parts or self._rest or self._cut)

    def add(self, part: Part) -> None:
        """Add a part; text is only ever divided between characters, and progress replaces what it was."""
        stream, data, cut = part
        if stream == "log":
            data = self._within_limit(data)
        if stream == "progress":
            self._parts = [known for known in self._parts if known[0] != "progress"]
        elif stream in _TEXT:
            data = self._rest.pop(stream, b"") + data
            whole = _whole(data)
            if whole < len(data):
                self._rest[stream] = data[whole:]
                data = data[:whole]
        while data or cut:
            data, cut = self._extend(stream, data, cut), 0

    def _within_limit(self, data: bytes) -> bytes:
        kept = data[: self._limit]
        self._limit -= len(kept)
        self._cut += len(data) - len(kept)
        return kept

    def _extend(self, stream: Stream, data: bytes, cut: int) -> bytes:
        """Put as much as fits into one part; give the rest."""
        last = self._parts[-1] if self._parts else None
        if (
            last is None
            or last[0] != stream
            or cut
            or stream in ("progress", "control")
            or self._full(last[2])
        ):
            last = (stream, cut, bytearray())
            self._parts.append(last)
        room = self._part - len(last[2])
        most = len(data) if len(data) <= room else _whole(data[:room]) or room
        last[2].extend(data[:most])
        return data[most:]

    def _full(self, data: bytearray) -> bool:
        return len(data) >= self._part - 4

    def take(self, limit: int) -> tuple[Part, ...]:
        """Give what may be told now, about so many bytes at most."""
        taken, size = 0, 0
        while taken < len(self._parts) and (not taken or size < limit):
            size += len(self._parts[taken][2])
            taken += 1
        parts = tuple(Part(stream, bytes(data), cut) for stream, cut, data in self._parts[:taken])
        del self._parts[:taken]
        return parts

    def take_all(self) -> tuple[Part, ...]:
        """Give all that is left, also what ends in the middle of a character."""
        rests, self._rest = self._rest, {}
        for stream, data in rests.items():
            self._parts.append((stream, 0, bytearray(data)))
        if self._cut:
            self._parts.append(("log", self._cut, bytearray()))
        return self.take(1 << 62)


class Voice:
    """What the runs of one worker say. `lost` hears of leases that are no longer ours.

    Each handler may say so many bytes in a run as `limit` gives when it first speaks.
    """

    def __init__(
        self,
        store: Store,
        worker: str,
        reach: Reach,
        lost: Callable[[Lease], None],
        *,
        limit: Callable[[], int],
    ) -> None:
        self._store, self._worker, self._reach, self._lost = store, worker, reach, lost
        self._limit = limit
        self._words: dict[Lease, Words] = {}
        self._saying: dict[Lease, int] = {}
        self._heard = asyncio.Event()
        self._hurry = asyncio.Event()
        self._running = False
        self._last = 0.0

    def say(self, lease: Lease, part: Part) -> None:
        """Say something soon."""
        words = self._words.get(lease)
        if words is None:
            words = self._words[lease] = Words(self._limit())
        words.add(part)
        if part.stream in _HURRIED:
            self._hurry.set()
        if not self._running and words:
            self._running = True
            self._reach.send(self._run())

    def has(self, lease: Lease) -> bool:
        """Whether a run has something that the store was not told, or is being told."""
        words = self._words.get(lease)
        return lease in self._saying or (words is not None and words.open)

    async def last_words(self, lease: Lease) -> tuple[Part, ...]:
        """Give what goes with the end of a run, when the store has heard what came before."""
        while lease in self._saying:
            await self._heard.wait()
        words = self._words.pop(lease, None)
        return () if words is None else words.take_all()

    def forget(self, lease: Lease) -> None:
        """Say nothing more of a run."""
        self._words.pop(lease, None)

    async def keep(self, lease: Lease, artifacts: list[Artifact]) -> None:
        """Keep the files of a run."""
        try:
            await self._reach.patiently(lambda: self._store.keep(self._worker, lease, artifacts))
        except LeaseLost:
            self._lost(lease)

    async def _run(self) -> None:
        try:
            while any(self._words.values()):
                await self._rest()
                await self._tell()
        finally:
            self._running = False

    async def _rest(self) -> None:
        """Wait until it is time for the next call."""
        begun = self._last
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, begun + PAUSE - time.monotonic())):
                await self._hurry.wait()
                await asyncio.sleep(max(0.0, begun + SHORT_PAUSE - time.monotonic()))

    async def _tell(self) -> None:
        """Tell the store what was said; some of it, if it is much."""
        self._hurry.clear()
        sayings, room = [], CALL_LIMIT
        for lease, words in self._words.items():
            if words and room > 0:
                parts = words.take(room)
                sayings.append(Saying(lease, parts, words.told))
                words.told += len(parts)
                room -= sum(len(part.data) for part in parts)
        self._saying = {saying.lease: len(saying.parts) for saying in sayings}
        self._last = time.monotonic()
        try:
            if sayings:
                lost = await self._reach.patiently(lambda: self._store.say(self._worker, sayings))
                for lease in lost:
                    self._words.pop(lease, None)
                    self._lost(lease)
        finally:
            self._saying = {}
            self._heard.set()
            self._heard.clear()


def _whole(data: bytes) -> int:
    """Give how much of it is whole characters, if it is UTF-8; else all."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        length = 2 if byte & 0xE0 == 0xC0 else 3 if byte & 0xF0 == 0xE0 else 4 if byte & 0xF8 == 0xF0 else 1
        return len(data) - back if length > back else len(data)
    return len(data)
