"""A primary and its replica: what counts as kept, and who may be written to."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from maitred.address import Address
from maitred.core.job import Order, Put
from maitred.core.settings import Settings
from maitred.errors import StoreUnavailable
from maitred.store.valkey import board
from maitred.store.valkey.connection import Connection
from maitred.store.valkey.store import ValkeyStores
from tests.closing import closing
from tests.clusters.servers import Node
from tests.conformance.party import NEED, U1
from tests.conftest import Servers
from tests.ports import HOST, free_ports
from tests.waiting import eventually


@pytest.fixture(params=["valkey", "redis"])
async def pair(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[list[Node]]:
    """A primary, and its replica."""
    ports = free_ports(2)
    nodes = [Node(Servers.binary(request.param), tmp_path / str(port), port) for port in ports]
    nodes[0].launch()
    nodes[1].launch(replicaof=f"{HOST} {nodes[0].port}")
    try:
        for node in nodes:
            await node.answers()

        async def follows() -> bool:
            return bool(nodes[0].says("ROLE")[2])

        await eventually(follows)
        yield nodes
    finally:
        for node in nodes:
            node.clear()


async def test_what_is_acknowledged_the_replica_has(
    pair: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    primary, replica = pair
    async with closing(ValkeyStores(f"valkey://{HOST}:{primary.port}?replicas=1")) as stores:
        await stores.queue("q").configure(Settings())
        [put] = await stores.queue("q").put([Order("a", U1, NEED, b"")])
        assert isinstance(put, Put)
        assert replica.says("HLEN", "maitred:{q}:Ids") == 1
        monkeypatch.setattr(board, "REPLICATION_PATIENCE", 0.05)
        replica.kill()
        with pytest.raises(StoreUnavailable, match="0 of 1 replicas had a change in time"):
            await stores.queue("q").put([Order("b", U1, NEED, b"")])
        assert (await stores.queue("q").status()).waiting == 2, "it may have been done, and reading goes on"
        primary.says("CONFIG", "SET", "min-replicas-to-write", 1)
        with pytest.raises(StoreUnavailable, match="NOREPLICAS"):
            await stores.queue("q").put([Order("c", U1, NEED, b"")])


async def test_a_server_that_is_no_longer_the_primary_is_left(pair: list[Node]) -> None:
    primary, replica = pair
    where = [primary]

    async def named() -> Address:
        return Address(host=HOST, port=where[0].port)

    with contextlib.closing(Connection(named)) as connection:
        assert await connection.call_together(("SET", "a", "1"), ("WAIT", 1, 0)) == [b"OK", 1]
        replica.says("REPLICAOF", "NO", "ONE")
        primary.says("REPLICAOF", HOST, replica.port)
        with pytest.raises(Exception, match="READONLY"):
            await connection.call("SET", "a", "2")
        with pytest.raises(StoreUnavailable, match=f"{HOST}:{primary.port} is not the primary now"):
            await connection.call("GET", "a")
        where[0] = replica
        assert await connection.call("GET", "a") == b"1"
