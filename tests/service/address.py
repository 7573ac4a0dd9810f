"""An address on loopback: a real server that keeps what it was sent, and answers as a test tells it to."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import NamedTuple

HEAD_END = b"\r\n\r\n"


class Request(NamedTuple):
    """What came in."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Reply(NamedTuple):
    """What is answered: a status with content, or the bare bytes."""

    status: int = 200
    body: bytes = b""
    headers: tuple[str, ...] = ()
    raw: bytes | None = None
    endless: bytes = b""


@dataclass
class Address:
    """The server. Replies are given in turn; the last one is given again and again."""

    port: int = 0
    replies: dict[str, list[Reply]] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    silent: bool = False
    serving: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def at(self, path: str, *replies: Reply) -> str:
        """Answer so at this path; give its address."""
        self.replies[path] = list(replies)
        return self.url + path

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self.serving.add(task)
        try:
            # Whoever cancels it wants the connection to be gone, and nothing more.
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._answer(reader, writer)
        finally:
            writer.close()
            self.serving.discard(task)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(HEAD_END)).decode()
        first, *lines = head.strip().split("\r\n")
        method, path, _ = first.split(" ")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.requests.append(Request(method, path, headers, body))
        self.arrived.set()
        if self.silent:
            await reader.read()
            return
        replies = self.replies.get(path, [Reply(404)])
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        if reply.raw is not None:
            writer.write(reply.raw)
        else:
            more = "".join(f"{line}\r\n" for line in reply.headers)
            length = "" if reply.endless else f"Content-Length: {len(reply.body)}\r\n"
            writer.write(f"HTTP/1.1 {reply.status} X\r\n{length}{more}Connection: close\r\n\r\n".encode())
            writer.write(reply.body)
        while reply.endless:
            writer.write(reply.endless)
            await writer.drain()
            await asyncio.sleep(0)
        await writer.drain()


@contextlib.asynccontextmanager
async def listening() -> AsyncIterator[Address]:
    """Listen on a free port."""
    address = Address()
    server = await asyncio.start_server(address.serve, "127.0.0.1", 0)
    address.port = server.sockets[0].getsockname()[1]
    try:
        yield address
    finally:
        server.close()
        serving = list(address.serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        await asyncio.sleep(0)
