"""One connection to a server, on which any number of calls are under way at once.

The first call in a turn of the event loop is written at once, those after it together; answers are given out
in order. So a lone call does not wait, and a burst of callers costs a few system calls and no pool of
connections. hiredis packs and parses.
"""

import asyncio
import ssl
from collections import deque
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

import hiredis

from maitred.errors import ConfigError, StoreUnavailable

CONNECT_PATIENCE = 5.0
_TCP = {"valkey": False, "redis": False, "valkeys": True, "rediss": True}
_MORE = object()


class ReplyError(Exception):
    """The server answered with an error."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens, and how to be let in."""

    path: str = ""
    host: str = ""
    port: int = 6379
    tls: bool = False
    username: str = ""
    password: str = ""
    database: int = 0

    @classmethod
    def read(cls, url: str) -> "Address":
        """Read a store's address; ConfigError if it is not one."""
        try:
            parts = urlsplit(url)
            user, password = unquote(parts.username or ""), unquote(parts.password or "")
            if parts.scheme == "unix":
                return cls(path=unquote(parts.path), username=user, password=password)
            if parts.scheme in _TCP:
                database = int(parts.path.strip("/") or 0)
                host, port = parts.hostname or "127.0.0.1", parts.port or 6379
                return cls("", host, port, _TCP[parts.scheme], user, password, database)
        except ValueError as error:
            raise ConfigError(f"a store's address cannot be read: {error}") from None
        raise ConfigError(
            "a store's address begins with unix://, valkey://, valkeys://, redis://, rediss:// or memory://"
        )


class Connection(asyncio.Protocol):
    """Connects when first used, and again after it was lost."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._transport: asyncio.Transport | None = None
        self._connecting = asyncio.Lock()
        self._pending: deque[asyncio.Future[Any]] = deque()
        self._written: list[bytes] = []
        self._turn_taken = False
        self._reader = hiredis.Reader()

    async def call(self, *args: Any) -> Any:
        """Send a command; give its answer.

        Raises `ReplyError` if the server refuses it, and `StoreUnavailable` if it cannot be reached or is
        lost before it answers: then the command may or may not have been carried out.
        """
        transport = self._transport or await self._connect()
        return await self._send(transport, args)

    def _send(self, transport: asyncio.Transport, args: tuple[Any, ...]) -> "asyncio.Future[Any]":
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._pending.append(future)
        packed = hiredis.pack_command(args)
        if self._turn_taken:
            self._written.append(packed)
        else:
            self._turn_taken = True
            loop.call_soon(self._write)
            transport.write(packed)
        return future

    def _write(self) -> None:
        self._turn_taken = False
        if self._written and self._transport is not None:
            data, self._written = b"".join(self._written), []
            self._transport.write(data)

    async def _connect(self) -> asyncio.Transport:
        async with self._connecting:
            if self._transport is not None:
                return self._transport
            try:
                async with asyncio.timeout(CONNECT_PATIENCE):
                    return await self._open()
            except (OSError, TimeoutError) as error:
                raise StoreUnavailable(
                    f"the store does not answer: {str(error) or 'no answer in time'}"
                ) from None

    async def _open(self) -> asyncio.Transport:
        loop, at = asyncio.get_running_loop(), self._address
        self._reader = hiredis.Reader(replyError=ReplyError, notEnoughData=_MORE)
        if at.path:
            transport, _ = await loop.create_unix_connection(lambda: self, at.path)
        else:
            context = ssl.create_default_context() if at.tls else None
            transport, _ = await loop.create_connection(lambda: self, at.host, at.port, ssl=context)
        try:
            greetings = []
            if at.password:
                names = (at.username,) if at.username else ()
                greetings.append(self._greet(transport, "AUTH", *names, at.password))
            if at.database:
                greetings.append(self._greet(transport, "SELECT", at.database))
            for greeting in greetings:
                await greeting
        except ReplyError as error:
            transport.close()
            raise StoreUnavailable(f"the store does not let us in: {error}") from None
        except BaseException:
            transport.close()
            raise
        self._transport = transport
        return transport

    def _greet(self, transport: asyncio.Transport, *args: Any) -> "asyncio.Future[Any]":
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending.append(future)
        transport.write(hiredis.pack_command(args))
        return future

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
        self._transport = None
        self._written = []
        lost, self._pending = self._pending, deque()
        for future in lost:
            if not future.done():
                future.set_exception(StoreUnavailable(f"the store went away: {error or 'it hung up'}"))

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.close()
            self._transport = None
