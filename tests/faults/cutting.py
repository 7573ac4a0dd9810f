"""A proxy that does to connections what networks do: it cuts them anywhere, or lets them fall silent."""

import asyncio
import contextlib
import tempfile
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self


class Cutter:
    """Stands between callers and a server's socket.

    Each connection is cut after a random number of bytes, up to `longest`, counted over both directions; with
    `longest` None it is left alone. With `swallow` set, the next message that a parked worker is sent is lost
    with its connection. While `silent`, nothing passes in either direction, on old and new connections.
    """

    def __init__(self, server: Path, dice: Random, longest: int | None = None) -> None:
        self.dice, self.longest = dice, longest
        self.swallow = False
        self.cuts = self.swallowed = 0
        self.awake = asyncio.Event()
        self.awake.set()
        self._server = server
        self._home = Path(tempfile.mkdtemp(prefix="maitred-faults-", dir="/tmp"))
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"unix://{self._home / 'cut.sock'}"

    async def __aenter__(self) -> Self:
        self._listening = await asyncio.start_unix_server(self._meet, self._home / "cut.sock")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._listening.wait_closed()
        (self._home / "cut.sock").unlink(missing_ok=True)
        self._home.rmdir()

    def _meet(self, caller: asyncio.StreamReader, to_caller: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._pass_on(caller, to_caller))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pass_on(self, caller: asyncio.StreamReader, to_caller: asyncio.StreamWriter) -> None:
        try:
            server, to_server = await asyncio.open_unix_connection(str(self._server))
        except OSError:
            to_caller.transport.abort()
            return
        wire = _Cut(self, self.dice.randrange(self.longest) if self.longest else None)
        ways = [
            asyncio.ensure_future(wire.pump(caller, to_server, to_server=True)),
            asyncio.ensure_future(wire.pump(server, to_caller, to_server=False)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for writer in (to_server, to_caller):
                writer.transport.abort()


class _Cut:
    """One connection through the proxy."""

    def __init__(self, cutter: Cutter, left: int | None) -> None:
        self.cutter, self.left = cutter, left
        self.parked = False

    async def pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, to_server: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                await self.cutter.awake.wait()
                if to_server:
                    self.parked |= b"BLMPOP" in data
                elif self.parked and self.cutter.swallow and len(data) > 64:
                    self.cutter.swallow = False
                    self.cutter.swallowed += 1
                    return
                if self.left is not None:
                    writer.write(data[: self.left])
                    self.left -= len(data)
                    if self.left <= 0:
                        self.cutter.cuts += 1
                        # What was still before the cut arrives.
                        await writer.drain()
                        return
                else:
                    writer.write(data)
                await writer.drain()
