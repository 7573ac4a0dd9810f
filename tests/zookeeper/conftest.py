"""One ZooKeeper per test process, a root of its own for each test, and both layouts."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from maitred.core.settings import Settings
from maitred.store.ledgered import LedgeredStores
from maitred.store.zookeeper.check import check
from maitred.store.zookeeper.ledger import Ledger
from maitred.store.zookeeper.session import Session
from tests.conftest import Clock, Servers
from tests.conftest import connect as connect_line
from tests.ports import free_ports
from tests.zookeeper.house import House, settings_for
from tests.zookeeper.server import Ensemble, ZooKeeper

Opener = Callable[[], Awaitable[Ledger]]


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    server = ZooKeeper(tmp_path_factory.mktemp("zookeeper") / "alone", free_ports(1)[0])
    server.start()
    server.await_ready()
    yield server
    server.stop()


@pytest.fixture
def ensemble(tmp_path: Path) -> Iterator[Ensemble]:
    ensemble = Ensemble(tmp_path)
    try:
        ensemble.start()
        yield ensemble
    finally:
        ensemble.stop()


@pytest.fixture(params=["seed", "mrt-zk"])
def layout(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def root() -> str:
    return f"/t{uuid4().hex}"


@pytest.fixture
async def connect(zookeeper: ZooKeeper, root: str, layout: str, clock: Clock) -> AsyncIterator[Opener]:
    """Open ledgers of the same tree, each with a session of its own."""
    opened: list[Ledger] = []

    async def another() -> Ledger:
        session = Session(zookeeper.host, timeout=5)
        ledger = Ledger(session, root, queue="ingest", layout=layout, clock=clock)  # type: ignore[arg-type]
        opened.append(ledger)
        await ledger.open()
        return ledger

    yield another
    for ledger in opened:
        await ledger.close()


@pytest.fixture
async def ledger(connect: Opener) -> AsyncIterator[Ledger]:
    """Give a ledger on an empty tree, which must be in order when the test is done with it."""
    ledger = await connect()
    yield ledger
    assert await check(ledger) == []


@pytest.fixture(params=["memory", "valkey"])
def line(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def settings(zookeeper: ZooKeeper, root: str, layout: str) -> Settings:
    return settings_for(f"zookeeper://{zookeeper.host}{root}", layout)


@pytest.fixture
def house(queue_house: House) -> House:
    return queue_house


@pytest.fixture
async def queue_house(
    servers: Servers, line: str, settings: Settings, clock: Clock, queue_name: str
) -> AsyncIterator[House]:
    """Give a queue on a line and a tree, which must agree when the test is done with them."""
    stores = LedgeredStores(connect_line(servers, line, clock), clock)
    try:
        store = stores.queue(queue_name)
        await store.configure(settings)
        tree = await store.tree()
        assert tree
        yield House(stores, store, tree, clock)
        assert await store.check() == []
    finally:
        await stores.close()
