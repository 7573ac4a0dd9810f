"""A client at a session: what it types goes to the program, what the terminal shows comes back, in order.

Both directions are bounded. What the client has not been sent is left in the store, and the program waits
when that is too much; what the program has not read is left with the client. Whoever takes the session up
last has it: the worker names them in the stream, so all servers see the same one.
"""

import asyncio
import contextlib
import secrets
from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from typing import Any, NamedTuple, NoReturn, TypeVar

from maitred.core.output import Chunk
from maitred.errors import MaitredError, NotRunning, StoreError
from maitred.service.document import Document
from maitred.service.ears import Ears
from maitred.store.port import Store
from maitred.wire import decode_json
from maitred.wire.relay import CLIENT_BYTES, Relayed, write_relayed

# What is sent of the past to a client that does not say what it has.
TAIL = 64 << 10
PIECE = 16 << 10
CHUNKS_AT_ONCE = 64
# How often a session is looked at though nothing was told of it.
LOOK_EVERY = 1.0
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0

T = TypeVar("T")


class TakenOver(Exception):
    """Another client has the session now."""


class Past(NamedTuple):
    """What a client that comes back is sent first, after byte `at` of the session; `cut` bytes are gone."""

    at: int
    pieces: list[bytes]
    cut: int


class Session:
    """One client's hold on a session: the id and record of its job, and the text by which it is taken up.

    All of it happens while it is `attended`; meanwhile it is counted among its queue's `clients`.
    """

    def __init__(
        self,
        store: Store,
        ears: Ears,
        job: tuple[str, int],
        name: str,
        *,
        window: int,
        attend_every: float,
        clients: Counter[str],
    ) -> None:
        self.name = name
        self.id, self._record = job
        self._store, self._ears, self._clients = store, ears, clients
        self._client = secrets.token_bytes(CLIENT_BYTES)
        self._window, self._attend_every = window, attend_every
        self._stream = self._chunks()
        self._after = self._shown = 0
        self._kept: deque[bytes] = deque()
        self._here = self._left = False
        # Bytes since this client has the session: sent to it, of these told to the worker; typed, and taken.
        self._had = self._acknowledged = 0
        self._typed = self._taken = 0
        self._claimed, self._room = asyncio.Event(), asyncio.Event()

    @contextlib.asynccontextmanager
    async def attended(self) -> AsyncGenerator[None, None]:
        """Let the store hear that somebody is there, for as long as this lasts and once at its end."""
        attending = asyncio.create_task(self._attend())
        self._clients[self._store.queue] += 1
        try:
            yield
        finally:
            self._clients[self._store.queue] -= 1
            attending.cancel()
            await self._stream.aclose()
            if not self._left:
                with contextlib.suppress(StoreError, TimeoutError):
                    async with asyncio.timeout(1):
                        await self._store.attend([self.id])

    async def end(self, why: str) -> None:
        """End the session, which its client may no longer have; if the store is away, it is abandoned."""
        self._left = True
        with contextlib.suppress(MaitredError):
            await self._store.cancel(self.id, why)

    async def _attend(self) -> None:
        while True:
            with contextlib.suppress(StoreError):
                await self._store.attend([self.id])
            await asyncio.sleep(self._attend_every)

    # ---------------------------------------------------------------- to the program

    async def claim(self, size: tuple[int, int] | None) -> None:
        """Take the session for this client; whoever had it before is told so by the worker."""
        await self._relay(b"", size)
        self._claimed.set()

    async def type_in(self, data: bytes) -> None:
        """Pass on what was typed, as fast as the program takes it."""
        await self._claimed.wait()
        most = max(1, min(PIECE, self._window // 4))
        for start in range(0, len(data), most):
            piece = data[start : start + most]
            while self._typed - self._taken + len(piece) > self._window:
                self._room.clear()
                await self._room.wait()
            before, self._typed = self._typed, self._typed + len(piece)
            await self._relay(piece, before=before)

    async def resize(self, size: tuple[int, int]) -> None:
        """Pass on that the terminal has another size."""
        await self._claimed.wait()
        await self._relay(b"", size)

    async def _relay(self, data: bytes, size: tuple[int, int] | None = None, before: int = 0) -> None:
        """Tell the worker, as soon as it has room for it; nobody, if the session is over."""
        had = self._had
        relayed = write_relayed(Relayed(self._client, had, before, data))
        pause = FIRST_PAUSE
        try:
            while not await self._patiently(lambda: self._store.type_in(self._record, relayed, size)):
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        except NotRunning:
            return
        self._acknowledged = max(self._acknowledged, had)
        self._ears.hurry()

    # ---------------------------------------------------------------- to the client

    async def past(self, received: int | None) -> Past:
        """Wait until this client has the session, and give what it missed, as far as it is kept.

        That is what came after all that it received; if it does not say, the last screens.
        """
        async for chunk in self._stream:
            if chunk.stream == "tty":
                self._kept.append(chunk.data)
                self._shown += len(chunk.data)
            elif chunk.stream == "control":
                self._heed(decode_json(chunk.data))
                if self._here:
                    break
        first = self._shown - sum(map(len, self._kept))
        wanted = max(first, self._shown - TAIL) if received is None else min(received, self._shown)
        at = max(first, wanted)
        return Past(at, list(_without(self._kept, at - first)), at - wanted)

    async def told(self) -> AsyncGenerator[bytes | Document, None]:
        """Give what the terminal shows, and what the client is told, to the end; `TakenOver`.

        Whoever asks for the next has sent the one before.
        """
        async for chunk in self._stream:
            if chunk.stream == "tty":
                yield chunk.data
                await self._sent(len(chunk.data))
            elif chunk.stream == "control" and (status := self._heed(decode_json(chunk.data))):
                yield status
        self._left = True
        yield await self._end()

    async def _chunks(self) -> AsyncGenerator[Chunk, None]:
        with self._ears.follow(self._record) as bell:
            while True:
                bell.clear()
                output = await self._patiently(
                    lambda: self._store.output(self.id, None, self._after, CHUNKS_AT_ONCE)
                )
                if output is None or output.record != self._record:
                    return
                if output.first > self._after + 1:
                    self._miss()
                for chunk in output.chunks:
                    self._after = chunk.number
                    yield chunk
                if output.chunks:
                    self._ears.hurry()
                    continue
                if output.ended:
                    return
                try:
                    async with asyncio.timeout(LOOK_EVERY):
                        await bell.wait()
                except TimeoutError:
                    if self._claimed.is_set() and not self._here:
                        # The claim itself may be lost, with a worker's answer that did not arrive.
                        await self._relay(b"")

    def _heed(self, control: dict[str, Any]) -> Document | None:
        """Take in what the worker says beside the terminal; give it if it is for the client."""
        if "client" in control:
            self._shown = control["at"]
            if control["client"] == self._client.hex():
                self._here = True
            elif self._here:
                self._lose()
        elif "taken" in control and self._here:
            self._taken = control["taken"]
            self._room.set()
        return control if "status" in control else None

    def _miss(self) -> None:
        """Note that something was not kept. For whoever has the session it would be: then it is another's."""
        if self._here:
            self._lose()
        self._kept.clear()

    def _lose(self) -> NoReturn:
        self._left = True
        raise TakenOver

    async def _sent(self, size: int) -> None:
        """Note that the client was sent something, and let the program go on when it was much."""
        if self._here:
            self._had += size
            if self._had - self._acknowledged >= self._window // 4:
                await self._relay(b"")

    async def _end(self) -> Document:
        [view] = await self._patiently(lambda: self._store.read([self.id]))
        if view is None or view.job.record != self._record:
            return {"status": "ended", "code": "deleted", "exit": None}
        result = decode_json(view.job.result) if view.job.result else {}
        return {"status": "ended", "code": view.job.code or None, "exit": result.get("exit")}

    @staticmethod
    async def _patiently(call: Callable[[], Awaitable[T]]) -> T:
        """Ask the store until it answers: the client can go away, and then this is cancelled."""
        pause = FIRST_PAUSE
        while True:
            try:
                return await call()
            except StoreError:
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)


def _without(pieces: Iterable[bytes], skip: int) -> Iterator[bytes]:
    """Leave out the first bytes."""
    for piece in pieces:
        if len(piece) > skip:
            yield piece[skip:]
        skip = max(0, skip - len(piece))
