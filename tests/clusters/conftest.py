"""A cluster for each test process, started when first needed; the stores of all tests here are on it."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from maitred.store.port import Stores
from maitred.store.valkey.store import ValkeyStores
from tests.clusters.servers import Nodes
from tests.conformance.conftest import floor, ledger, party
from tests.conftest import Clock, Servers

__all__ = ["floor", "ledger", "party"]


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    nodes = Nodes(Servers.binary("valkey"), tmp_path_factory.mktemp("cluster") / "nodes")
    try:
        asyncio.run(nodes.start())
        yield nodes
    finally:
        nodes.clear()


@pytest.fixture
def kind() -> str:
    return "cluster"


@pytest.fixture
async def stores(cluster: Nodes, clock: Clock) -> AsyncIterator[Stores]:
    stores = ValkeyStores(cluster.url, clock=clock)
    yield stores
    await stores.close()
