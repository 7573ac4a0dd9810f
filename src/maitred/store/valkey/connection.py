"""One connection to a server, on which any number of calls are under way at once.

Calls made in the same turn of the event loop are written together, and answers are given out in order, so a
burst of callers costs one system call each way and no pool of connections. hiredis packs and parses.

A server that vanished without hanging up answers nothing for ever; the wire is given up when its oldest call
has waited too long, so that the next one is made on a new wire.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import hiredis

from maitred.address import Address
from maitred.errors import StoreUnavailable
from maitred.store.valkey import scripts

CONNECT_PATIENCE = 5.0
ANSWER_PATIENCE = 5.0
# What a server answers that may no longer be the one to write to, also to one that is parked there.
_DEMOTED = ("READONLY", "UNBLOCKED", "NOREPLICAS")
_MORE = object()
Finder = Callable[[], Awaitable[Address]]


class ReplyError(Exception):
    """The server answered with an error."""


class Wire(asyncio.Protocol):
    """One transport and who waits for its answers; once lost it is never used again."""

    def __init__(self, patience: float | None) -> None:
        self.lost = False
        self._patience = patience
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._pending: deque[asyncio.Future[Any]] = deque()
        self._written: list[bytes] = []
        self._turn_taken = False
        self._reader = hiredis.Reader(replyError=ReplyError, notEnoughData=_MORE)
        self._watch: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to watch for answers that do not come."""
        # Not checked by type: uvloop's transports are no subclass of asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._look(None)

    def send(self, args: tuple[Any, ...]) -> "asyncio.Future[Any]":
        """Write a command, at once if it is the first of this turn; give what its answer will be.

        Raises `StoreUnavailable` if the wire was lost before: nobody would end the wait.
        """
        if self.lost:
            raise StoreUnavailable("the store went away: it hung up at once")
        future: asyncio.Future[Any] = self._loop.create_future()
        self._pending.append(future)
        self._written.append(hiredis.pack_command(args))
        if not self._turn_taken:
            self._turn_taken = True
            self._loop.call_soon(self._end_turn)
            self._write()
        return future

    def _end_turn(self) -> None:
        self._turn_taken = False
        if self._written:
            self._write()

    def _write(self) -> None:
        data, self._written = b"".join(self._written), []
        if self._transport is not None and not self.lost:
            self._transport.write(data)

    def _look(self, oldest: "asyncio.Future[Any] | None") -> None:
        """Hang up if the call that was the oldest one at the last look still is."""
        if self._patience is None or self.lost or self._transport is None:
            return
        now_oldest = self._pending[0] if self._pending else None
        if oldest is not None and now_oldest is oldest:
            self._transport.abort()
        else:
            self._watch = self._loop.call_later(self._patience, self._look, now_oldest)

    def data_received(self, data: bytes) -> None:
        """Give each answer to the call that waits for it."""
        self._reader.feed(data)
        pending = self._pending
        while (reply := self._reader.gets()) is not _MORE:
            future = pending.popleft()
            if future.done():
                continue
            if isinstance(reply, ReplyError):
                future.set_exception(reply)
            else:
                future.set_result(reply)

    def connection_lost(self, error: Exception | None) -> None:
        """Tell all who wait that there will be no answer."""
        self.lost = True
        if self._watch is not None:
            self._watch.cancel()
        lost, self._pending = self._pending, deque()
        for future in lost:
            if not future.done():
                future.set_exception(StoreUnavailable(f"the store went away: {error or 'it hung up'}"))

    @property
    def busy(self) -> bool:
        """Whether anybody waits for an answer."""
        return bool(self._pending) and not self.lost

    def close(self) -> None:
        """Hang up; nobody may call on this wire from now on."""
        self.lost = True
        if self._watch is not None:
            self._watch.cancel()
        if self._transport is not None:
            self._transport.close()


class Connection:
    """Connects when first used, and again after the wire was lost.

    `where` is the server's address, or what finds it each time that it is needed; a server that was found has
    to be a primary. `patience` is how long it may take for one answer; None for a connection on which it may
    block. `at` is the address of the server that it is connected to now, None if there is none.
    """

    def __init__(self, where: Address | Finder, *, patience: float | None = ANSWER_PATIENCE) -> None:
        self._where = where
        self._patience = patience
        self.at: Address | None = None
        self._wire: Wire | None = None
        self._opening: asyncio.Task[Wire] | None = None

    async def call(self, *args: Any) -> Any:
        """Send a command; give its answer. A server that lacks our functions is given them.

        Raises `ReplyError` if the server refuses it, and `StoreUnavailable` if it cannot be reached or is
        lost before it answers: then the command may or may not have been carried out.
        """
        wire = self._wire
        if wire is None or wire.lost:
            wire = await self._connect()
        try:
            return await wire.send(args)
        except ReplyError as error:
            await self._cope(wire, error)
        return await wire.send(args)

    async def call_together(self, *commands: tuple[Any, ...]) -> list[Any]:
        """Send commands with nobody else's between them, and give their answers; raises like `call`."""
        wire = self._wire
        if wire is None or wire.lost:
            wire = await self._connect()
        try:
            return await self._answers(wire, commands)
        except ReplyError as error:
            await self._cope(wire, error)
        return await self._answers(wire, commands)

    @staticmethod
    async def _answers(wire: Wire, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        answers = await asyncio.gather(*map(wire.send, commands), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return answers

    @staticmethod
    async def _cope(wire: Wire, error: ReplyError) -> None:
        """Do what lets a refused command succeed at the next try; raise the error if that is nothing."""
        if "Function not found" in str(error):
            try:
                await wire.send(("FUNCTION", "LOAD", "REPLACE", scripts.library()))
            except ReplyError as refusal:
                error = refusal
            else:
                return
        if str(error).startswith(_DEMOTED):
            # The next call finds out where the primary is now.
            wire.close()
        raise error

    async def _connect(self) -> Wire:
        """Connect once for all who ask at the same time: all of them get the one wire, or the one refusal."""
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open())
            self._opening.add_done_callback(self._opened)
        return await asyncio.shield(self._opening)

    def _opened(self, opening: "asyncio.Task[Wire]") -> None:
        abandoned = opening is not self._opening
        if not abandoned:
            self._opening = None
        if opening.cancelled() or opening.exception():
            return
        if abandoned:
            # It was hung up in the very moment in which it came up.
            opening.result().close()
        else:
            self._wire = opening.result()

    async def _open(self) -> Wire:
        found = not isinstance(self._where, Address)
        at = self._where if isinstance(self._where, Address) else await self._where()
        wire = Wire(self._patience)
        try:
            async with asyncio.timeout(CONNECT_PATIENCE):
                await self._reach(wire, at)
                await self._be_let_in(wire, at, to_primary=found)
        except (OSError, TimeoutError) as error:
            wire.close()
            raise StoreUnavailable(
                f"the store does not answer: {str(error) or 'no answer in time'}"
            ) from None
        except ReplyError as error:
            wire.close()
            raise StoreUnavailable(f"the store does not let us in: {error}") from None
        except BaseException:
            wire.close()
            raise
        self.at = at
        return wire

    @staticmethod
    async def _reach(wire: Wire, at: Address) -> None:
        loop = asyncio.get_running_loop()
        if at.path:
            await loop.create_unix_connection(lambda: wire, at.path)
        else:
            context = ssl.create_default_context() if at.tls else None
            await loop.create_connection(lambda: wire, at.host, at.port, ssl=context)

    @staticmethod
    async def _be_let_in(wire: Wire, at: Address, *, to_primary: bool) -> None:
        greetings = []
        if at.password:
            names = (at.username,) if at.username else ()
            greetings.append(wire.send(("AUTH", *names, at.password)))
        if at.database:
            greetings.append(wire.send(("SELECT", at.database)))
        if to_primary:
            greetings.append(wire.send(("ROLE",)))
        answers = await asyncio.gather(*greetings)
        if to_primary and answers[-1][0] != b"master":
            raise StoreUnavailable(f"the store is not ready: {at.host}:{at.port} is not the primary now")

    @property
    def busy(self) -> bool:
        """Whether anybody waits for an answer or for the connection."""
        return self._opening is not None or (self._wire is not None and self._wire.busy)

    def close(self) -> None:
        """Hang up."""
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        if self._wire is not None:
            self._wire.close()
            self._wire = self.at = None
