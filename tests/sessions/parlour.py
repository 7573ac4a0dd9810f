"""A place for sessions: real servers and workers on one store, and clients at WebSockets."""

import asyncio
import contextlib
import json
import re
import socket
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from maitred.core.job import Job, Order, Phase, Submitter
from maitred.core.settings import SECOND, Settings
from maitred.http import Server, create_app, own_hosts, take_port
from maitred.http.server import address
from maitred.service.desk import Desk
from maitred.service.foresights import Foresights
from maitred.service.handlers import Handlers
from maitred.store.port import Stores
from maitred.wire.codec import encode_json
from maitred.worker import Worker
from tests.waiting import eventually
from tests.working import changed

PATIENCE = 20
ANN = {"type": "user", "id": "ann"}


class Guest:
    """A client at a session: what it was shown, and what it was told."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.shown = bytearray()
        self.told: list[dict[str, Any]] = []
        self._read = 0

    async def says(self, frame: object) -> None:
        """Send a text frame."""
        await self.connection.send(frame if isinstance(frame, str) else json.dumps(frame))

    async def types(self, keys: str) -> None:
        """Send what is typed."""
        await self.connection.send(keys.encode())

    async def hears(self) -> bool:
        """Read one frame; False when the connection is closed."""
        try:
            async with asyncio.timeout(PATIENCE):
                frame = await self.connection.recv()
        except ConnectionClosed:
            return False
        if isinstance(frame, bytes):
            self.shown += frame
        else:
            self.told.append(json.loads(frame))
        return True

    async def until(self, pattern: str) -> str:
        """Read on until the terminal has shown a pattern since the last time; give what it showed."""
        while not (found := re.search(pattern.encode(), self.shown[self._read :], re.DOTALL)):
            assert await self.hears(), (pattern, self.shown, self.told, self.connection.close_reason)
        seen = self.shown[self._read : self._read + found.end()]
        self._read += found.end()
        return seen.decode()

    async def status(self, wanted: str) -> dict[str, Any]:
        """Read on until a status is told."""
        while not (found := [word for word in self.told if word["status"] == wanted]):
            assert await self.hears(), (wanted, self.shown, self.told, self.connection.close_reason)
        return found[-1]

    async def closed(self) -> int | None:
        """Read to the end; give the code with which the connection was closed."""
        while await self.hears():
            pass
        return self.connection.close_code


class Parlour:
    """One queue with servers and workers that come and go."""

    def __init__(self, stores: Stores, queue: str) -> None:
        self.stores, self.store = stores, stores.queue(queue)
        self.settings = Settings(grace=2 * SECOND)
        self.address = ""
        self._open = contextlib.AsyncExitStack()

    async def set(self, **changes: Any) -> None:
        """Change the queue's settings; durations in seconds."""
        self.settings = changed(self.settings, changes)
        await self.store.configure(self.settings)

    @contextlib.asynccontextmanager
    async def server(self, comeback: float = 30.0) -> AsyncIterator[str]:
        """Serve for the time of the block; give the address of its sessions."""
        foresights = Foresights(self.stores)
        desk = Desk(self.stores, foresights=foresights, comeback=comeback)
        with take_port("127.0.0.1", 0) as taken:
            server = Server(create_app(desk, hosts=own_hosts(taken)), closing=foresights.close)
            serving = asyncio.create_task(server.serve([taken]))
            await server.up.wait()
            try:
                yield f"{address(taken).replace('http', 'ws')}/api/v1/queues/{self.store.queue}/interactive"
            finally:
                server.stop()
                await serving

    @contextlib.asynccontextmanager
    async def worker(self, slots: int = 2) -> AsyncIterator[Worker]:
        """Run a worker for the time of the block, and stop it in order afterwards."""
        worker = Worker(self.store, Handlers(), slots)
        task = asyncio.create_task(worker.run())

        async def joined() -> bool:
            workers = (await self.store.status()).workers
            return any(each.name == worker.name for each in workers)

        await eventually(joined)
        try:
            yield worker
        finally:
            worker.stop()
            await task

    @contextlib.asynccontextmanager
    async def guest(self, url: str | None = None) -> AsyncIterator[Guest]:
        """Connect a client; little is on the way to it that it has not read."""
        where = urlsplit(url or self.address)
        with socket.socket() as narrow:
            narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            narrow.connect((where.hostname, where.port))
            narrow.setblocking(False)
            async with connect(where.geturl(), sock=narrow, compression=None, max_size=None) as connection:
                yield Guest(connection)

    @contextlib.asynccontextmanager
    async def session(self, *command: str, **frame: Any) -> AsyncIterator[Guest]:
        """Open a session; a plain shell if no command is named."""
        async with self.guest(frame.pop("url", None)) as guest:
            await guest.says({"submitter": ANN, "command": command or ("sh",), **frame})
            await guest.status("started")
            yield guest

    async def submits(self, *argv: str) -> str:
        """Submit a command; give its id."""
        body = encode_json({"key": "job", "run": {"command": argv}})
        await self.store.put([Order("job", Submitter("user", "bob"), "command", body)])
        return "job"

    async def job(self, id: str) -> Job:
        [view] = await self.store.read([id])
        assert view is not None
        return view.job

    async def ended(self, id: str) -> Job:
        """Wait until a job has ended; give it."""

        async def look() -> Job | None:
            job = await self.job(id)
            return job if job.phase is Phase.ENDED else None

        job = await eventually(look)
        assert job is not None
        return job
