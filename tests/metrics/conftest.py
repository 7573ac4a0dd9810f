"""A house whose server and worker count in one place, over each store, on its own clock."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from maitred.http import Server, create_app, own_hosts, take_port
from maitred.http.server import address
from maitred.service.desk import Desk
from maitred.service.foresights import Foresights
from maitred.service.handlers import Handlers
from maitred.service.metrics import Metrics
from maitred.store.port import Store, Stores
from maitred.worker import Worker
from tests.http.guest import Guest
from tests.metrics.readings import Readings
from tests.working import at_work


class Counted:
    """A server with its metrics, and workers beside it."""

    def __init__(self, stores: Stores, store: Store) -> None:
        self.stores, self.store = stores, store
        self.handlers = Handlers()
        self.metrics = Metrics()
        self.working: list[Worker] = []

    @asynccontextmanager
    async def served(self) -> AsyncIterator[None]:
        """Serve for the time of the block."""
        foresights = Foresights(self.stores)
        self.desk = Desk(self.stores, foresights=foresights)
        self.metrics.runs.watch(lambda: [worker.health() for worker in self.working])
        with take_port("127.0.0.1", 0) as taken:
            app = create_app(self.desk, hosts=own_hosts(taken), metrics=self.metrics)
            server = Server(app, closing=foresights.close)
            serving = asyncio.create_task(server.serve([taken]))
            try:
                await server.up.wait()
                async with httpx.AsyncClient(base_url=address(taken), timeout=20) as http:
                    self.guest = Guest(http, self.store)
                    self.reads = Readings(http, self.store.queue)
                    await self.listens(foresights)
                    yield
            finally:
                server.stop()
                await serving

    async def listens(self, foresights: Foresights) -> None:
        """Wait until the server hears what happens."""
        foresight = foresights.of(self.store.queue)
        assert foresight
        await foresight.ready.wait()

    @asynccontextmanager
    async def worker(self, slots: int = 2) -> AsyncIterator[Worker]:
        """Run a worker for the time of the block."""
        worker = Worker(self.store, self.handlers, slots, metrics=self.metrics.runs)
        self.working.append(worker)
        async with at_work(worker):
            yield worker


@pytest.fixture
def clock() -> None:
    """Override: the stores are on their own clock."""


@pytest.fixture
async def counted(stores: Stores, store: Store) -> AsyncIterator[Counted]:
    counted = Counted(stores, store)
    async with counted.served():
        yield counted
