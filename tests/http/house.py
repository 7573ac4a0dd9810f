"""A real server over a memory store, with a worker that does as it is told, and streams of events to read."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import httpx

from maitred.core.job import Finish, Start
from maitred.core.settings import MINUTE, Settings
from maitred.http import Server, create_app, own_hosts, take_port
from maitred.http.server import address
from maitred.service.desk import Desk
from maitred.service.foresights import Foresights
from maitred.store.memory import MemoryStores
from maitred.store.port import Store, Stores
from tests.http.guest import Guest

NEED = "handler:grade"


class Event(NamedTuple):
    """One event of a stream; a comment is one without a name."""

    name: str
    data: Any
    id: str | None


class House:
    """A real server over a memory store, with a worker of one slot that does as it is told."""

    def __init__(self, http: httpx.AsyncClient, store: Store, foresights: Foresights) -> None:
        self.guest, self.store, self.foresights = Guest(http, store), store, foresights
        self.held: list[Start] = []

    async def works(self) -> None:
        """Let the worker in."""
        self.held += (await self.store.join("w", 1, [NEED])).starts

    async def ends(self, code: str = "") -> None:
        """End what runs; what is next starts."""
        self.held += [message for message in await self.store.park("w", 0.01) if isinstance(message, Start)]
        done, self.held = self.held, []
        results = [Finish(start.lease, code, result=b'{"ok":1}') for start in done]
        shift = await self.store.finish("w", results)
        self.held += shift.starts

    @contextlib.asynccontextmanager
    async def watching(self, id: str, last: str | None = None) -> AsyncIterator[AsyncIterator[Event]]:
        """Watch a job; give its events."""
        async with self.stream(f"/jobs/{id}/events", last) as stream:
            yield stream

    @contextlib.asynccontextmanager
    async def everything(
        self, last: str | None = None, key: str | None = None, **query: Any
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """Watch all queues; give what happens there."""
        headers = ({"Last-Event-ID": last} if last else {}) | (
            {"Authorization": f"Bearer {key}"} if key else {}
        )
        http = self.guest.http
        async with http.stream("GET", "/api/v1/events", headers=headers, params=query, timeout=20) as answer:
            assert answer.status_code == 200, await answer.aread()
            yield events(answer)

    @contextlib.asynccontextmanager
    async def stream(self, what: str, last: str | None = None) -> AsyncIterator[AsyncIterator[Event]]:
        """Open a stream of the queue's; give its events."""
        headers = {"Last-Event-ID": last} if last else {}
        url = f"{self.guest.url}{what}"
        async with self.guest.http.stream("GET", url, headers=headers, timeout=20) as answer:
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith("text/event-stream")
            yield events(answer)


async def events(answer: httpx.Response) -> AsyncIterator[Event]:
    """Read the events of a stream to its end."""
    fields: dict[str, str] = {}
    async for line in answer.aiter_lines():
        name, _, value = line.partition(": ")
        if line:
            fields[name] = value
        elif fields.keys() == {"retry"}:
            fields = {}
        else:
            yield Event(fields.get("event", ""), json.loads(fields.get("data", "null")), fields.get("id"))
            fields = {}


async def until(stream: AsyncIterator[Event], name: str, **wanted: Any) -> Event:
    """Read on up to an event with this name and these facts."""
    async for event in stream:
        if event.name == name and all(event.data.get(key) == value for key, value in wanted.items()):
            return event
    raise AssertionError(f"the stream ended without {name} {wanted}")


async def rest(stream: AsyncIterator[Event]) -> list[Event]:
    """Read to the end, without places."""
    return [event async for event in stream if event.name != "place"]


@contextlib.asynccontextmanager
async def open_house(queue: str, stores: Stores | None = None) -> AsyncIterator[House]:
    """Open a house with one queue, on a store of its own or on one that has other servers too."""
    stores = stores or MemoryStores()
    store = stores.queue(queue)
    await store.configure(Settings(lease=60 * MINUTE))
    foresights = Foresights(stores)
    with take_port("127.0.0.1", 0) as taken:
        app = create_app(Desk(stores, foresights=foresights), hosts=own_hosts(taken))
        server = Server(app, closing=foresights.close)
        serving = asyncio.create_task(server.serve([taken]))
        try:
            await server.up.wait()
            async with httpx.AsyncClient(base_url=address(taken)) as http:
                yield House(http, store, foresights)
        finally:
            server.stop()
            await serving
