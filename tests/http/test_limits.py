"""What a client may take of a real server: how much, how long, how many; and that others do not notice."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from maitred.core.settings import Settings
from maitred.http import Server, create_app, own_hosts, take_port
from maitred.http.connection import Connection
from maitred.http.limits import Limits
from maitred.http.server import address
from maitred.service.desk import Desk
from maitred.store.memory import MemoryStores
from tests.http.guest import body, is_problem
from tests.waiting import eventually

QUICK = Limits(patience=0.5, stall=0.5, keep_alive=0.5)


class Counter:
    """A place with one server."""

    def __init__(self, taken: socket.socket, server: Server, desk: Desk) -> None:
        self.host, self.port = taken.getsockname()
        self.url, self.server, self.desk = address(taken), server, desk

    @contextlib.asynccontextmanager
    async def line(self, sent: bytes = b"") -> AsyncIterator["Line"]:
        """Connect, and send something."""
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            writer.write(sent)
            yield Line(reader, writer)
        finally:
            writer.close()

    def head(self, first: str, *more: str) -> bytes:
        """Write a request's header."""
        return "\r\n".join((f"{first} HTTP/1.1", f"Host: {self.host}:{self.port}", *more, "", "")).encode()


class Line:
    """A connection by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def end(self) -> bytes:
        """Read to the end."""
        async with asyncio.timeout(20):
            try:
                return await self.reader.read()
            except ConnectionResetError:
                return b""

    async def refused(self, status: int, code: str) -> dict[str, str]:
        """Read a problem and the end of the connection; give the headers."""
        head, _, rest = (await self.end()).partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        assert first.split()[1] == str(status), head
        problem: dict[str, Any] = json.loads(rest)
        assert (problem["status"], problem["type"]) == (status, f"urn:maitred:problem:{code}")
        headers = dict(line.split(": ", 1) for line in lines)
        assert headers["content-type"] == "application/problem+json"
        assert headers["x-content-type-options"] == "nosniff"
        return headers


@contextlib.asynccontextmanager
async def opened(limits: Limits) -> AsyncIterator[Counter]:
    stores = MemoryStores()
    await stores.queue("q").configure(Settings(max_body=1 << 20))
    desk = Desk(stores)
    with take_port("127.0.0.1", 0) as taken:
        server = Server(create_app(desk, hosts=own_hosts(taken)), limits=limits)
        serving = asyncio.create_task(server.serve([taken]))
        await server.up.wait()
        try:
            yield Counter(taken, server, desk)
        finally:
            server.stop()
            await serving


@pytest.fixture
async def quick() -> AsyncIterator[Counter]:
    async with opened(QUICK) as counter:
        yield counter


async def test_a_header_that_is_too_large_is_refused_whole_or_not(quick: Counter) -> None:
    large = "x" * QUICK.header
    async with quick.line(quick.head("GET /healthz", f"X: {large}")) as line:
        await line.refused(431, "header-too-large")
    async with quick.line(quick.head("GET /healthz", f"X: {large}").rstrip(b"\r\n")) as line:
        await line.refused(431, "header-too-large")
    async with quick.line(b"\r\n" * QUICK.header) as line:
        await line.refused(431, "header-too-large")
    async with quick.line(quick.head(f"GET /{large}")) as line:
        await line.refused(414, "header-too-large")
    async with quick.line(
        quick.head("GET /healthz", "X: " + "x" * (QUICK.header // 2), "Connection: close")
    ) as line:
        assert b"200 OK" in await line.end()


async def test_whoever_comes_through_a_proxy_of_this_host_is_no_caller_of_this_host(quick: Counter) -> None:
    async with httpx.AsyncClient(base_url=quick.url) as http:
        assert (await http.get("/api/v1/queues")).status_code == 200
        far = await http.get("/api/v1/queues", headers={"X-Forwarded-For": "127.0.0.1, 203.0.113.9"})
        assert is_problem(far, 401, "unauthorized")


async def test_what_is_no_http_is_a_problem_too(quick: Counter) -> None:
    async with quick.line(b"\x16\x03\x01 hello\r\n\r\n") as line:
        await line.refused(400, "malformed")


async def test_a_body_has_no_endless_trailer(quick: Counter) -> None:
    head = quick.head("PUT /api/v1/queues/q/jobs", "Transfer-Encoding: chunked")
    async with quick.line(head + b"2\r\n{}\r\n0\r\nX: " + b"x" * (32 * QUICK.header)) as line:
        await line.refused(431, "header-too-large")


async def test_a_client_that_sends_slowly_is_told_so_and_closed(quick: Counter) -> None:
    put = quick.head("PUT /api/v1/queues/q/jobs", "Content-Length: 1000")
    async with (
        quick.line() as silent,
        quick.line(b"\r\n") as blank,
        quick.line(quick.head("GET /healthz")[:-2]) as no_header,
        quick.line(put + b"{") as no_body,
        quick.line(put.replace(b"1000", b"2000000")) as nobody_waits,
    ):
        await no_header.refused(408, "too-slow")
        await no_body.refused(408, "too-slow")
        assert await silent.end() == b""
        assert b"408" in await blank.end()
        assert b"413" in (await nobody_waits.end()).splitlines()[0]


async def test_a_body_that_drips_is_too_slow(quick: Counter) -> None:
    async with quick.line(quick.head("PUT /api/v1/queues/q/jobs", "Content-Length: 1000")) as line:

        async def drips() -> None:
            with contextlib.suppress(ConnectionError):
                while not line.writer.is_closing():
                    line.writer.write(b" ")
                    await asyncio.sleep(0.1)

        dripping = asyncio.create_task(drips())
        try:
            await line.refused(408, "too-slow")
        finally:
            dripping.cancel()
        await eventually(lambda: has(quick, 0))


async def test_a_body_that_comes_fast_enough_may_take_longer() -> None:
    async with (
        opened(QUICK._replace(patience=0.2)) as counter,
        httpx.AsyncClient(base_url=counter.url) as http,
    ):

        async def pieces() -> AsyncIterator[bytes]:
            sent = json.dumps(body(metadata={"x": "x" * 10_000})).encode()
            # What comes at first pays for the time that the rest takes, also where that is slow.
            yield sent[:8000]
            for at in range(8000, len(sent), 200):
                yield sent[at : at + 200]
                await asyncio.sleep(0.15)

        assert (await http.put("/api/v1/queues/q/jobs", content=pieces())).status_code == 201


async def test_an_idle_connection_is_closed(quick: Counter) -> None:
    async with quick.line(quick.head("GET /healthz")) as line:
        assert (await line.end()).endswith(b'{"status":"ok"}')


async def test_a_reader_that_does_not_read_is_cut(quick: Counter) -> None:
    await quick.desk.put("q", body(metadata={"x": "x" * 900_000}))
    with socket.socket() as narrow:
        narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        narrow.connect((quick.host, quick.port))
        narrow.sendall(quick.head("GET /api/v1/queues/q/jobs") * 8)
        await eventually(lambda: has(quick, 1))
        await eventually(lambda: has(quick, 0))


async def test_a_websocket_that_pings_and_never_reads_fills_nothing(quick: Counter) -> None:
    shake = quick.head(
        "GET /api/v1/queues/q/interactive",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
    )
    ping = b"\x89\xfd" + bytes(4) + b"x" * 125
    with socket.socket() as narrow:
        narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        narrow.connect((quick.host, quick.port))
        narrow.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(narrow, shake)
        assert await loop.sock_recv(narrow, 12) == b"HTTP/1.1 101"
        [connection] = quick.server.server_state.connections
        for _ in range(100):
            await loop.sock_sendall(narrow, ping * 1000)
        assert not isinstance(connection, Connection)
        assert 0 < connection.transport.get_write_buffer_size() < 1 << 20
        # Nobody reads the rest of this; the server would wait for it.
        connection.transport.abort()


async def has(counter: Counter, connections: int) -> bool:
    return len(counter.server.server_state.connections) == connections


async def test_one_connection_too_many_is_told_so_and_far_too_many_are_closed() -> None:
    async with opened(Limits(connections=2)) as counter, contextlib.AsyncExitStack() as lines:
        first = await lines.enter_async_context(counter.line())
        await lines.enter_async_context(counter.line())
        await eventually(lambda: has(counter, 2))
        async with counter.line(counter.head("GET /healthz")) as third:
            assert int((await third.refused(503, "too-many-connections"))["retry-after"]) > 0
        await eventually(lambda: has(counter, 2))
        async with counter.line(), counter.line() as fourth:
            assert await fourth.end() == b""
        first.writer.write(counter.head("GET /healthz"))
        assert await first.reader.readline() == b"HTTP/1.1 200 OK\r\n"


def test_the_store_keeps_its_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr("resource.getrlimit", lambda _: (1024, 4096))
    monkeypatch.setattr("resource.setrlimit", lambda _, new: asked.append(new))
    assert Limits(connections=500).within_descriptors().connections == 500
    assert not asked
    assert Limits(connections=2000).within_descriptors().connections == 2000
    assert Limits(connections=100_000).within_descriptors().connections == 4096 - 256
    assert asked == [(2256, 4096), (4096, 4096)]
