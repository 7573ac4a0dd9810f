"""Queues on a cluster: where they are, and how they are found again when they move."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from maitred.address import Site
from maitred.core.job import Order, Put
from maitred.core.settings import Settings
from maitred.errors import EvictionForbidden, StoreError, UnknownQueue
from maitred.store.port import Stores
from maitred.store.valkey import keys
from maitred.store.valkey.cluster import Cluster, slot
from maitred.store.valkey.store import ValkeyStores
from tests.clusters.servers import Node, Nodes
from tests.conformance.party import NEED, U1
from tests.conftest import Servers
from tests.ports import HOST, free_ports


@pytest.fixture
async def stores(cluster: Nodes) -> AsyncIterator[Stores]:
    stores = ValkeyStores(cluster.url)
    yield stores
    await stores.close()


def moves(cluster: Nodes, queue: str) -> Node:
    """Let a queue's slot move to another node, with all that is in it; give that node."""
    where = slot(keys.floor(queue))
    old = cluster.of(keys.floor(queue))
    new = next(node for node in cluster.nodes if node is not old)
    assert old.says(
        "CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", where, where, "NODE", new.says("CLUSTER", "MYID")
    )
    return new


@pytest.mark.parametrize(
    ("key", "number"), [("123456789", 12739), ("maitred:{q}:Floor", 0), ("a{}b", 0), ("{a}{b}", 0), ("{a", 0)]
)
def test_a_slot_is_the_one_that_the_servers_mean(cluster: Nodes, key: str, number: int) -> None:
    assert slot(key) == cluster.nodes[0].says("CLUSTER", "KEYSLOT", key)
    assert number in (0, slot(key))


async def test_a_servers_queues_are_on_all_nodes_and_all_are_named(cluster: Nodes, stores: Stores) -> None:
    names = [cluster.queue_on(node, "named") for node in cluster.nodes]
    for name in names:
        await stores.queue(name).configure(Settings())
        [put] = await stores.queue(name).put([Order("a", U1, NEED, b"")])
        assert isinstance(put, Put)
        assert cluster.of(keys.floor(name)).says("EXISTS", keys.floor(name))
    assert set(names) <= set(await stores.names())
    assert [await stores.queue(name).check() for name in names] == [[], [], []]
    assert await stores.script_time()
    await stores.ping()


async def test_keys_and_the_audit_log_are_kept_beside_the_queues(stores: Stores) -> None:
    assert await stores.keyring.change("k", None, b"1")
    assert (await stores.keyring.all())["k"] == b"1"
    await stores.keyring.note([b"somebody", b"did something"])
    assert [note for _, note in await stores.keyring.notes(None, 2)] == [b"did something", b"somebody"]
    assert await stores.keyring.change("k", b"1", None)


async def test_a_queue_is_followed_to_where_its_slot_moved(cluster: Nodes, stores: Stores) -> None:
    name = cluster.queue_on(cluster.nodes[0], "moving")
    store = stores.queue(name)
    await store.configure(Settings())
    await store.join("w", 0, [NEED])
    parked = asyncio.create_task(store.park("w", 30))
    puts = [store.put([Order(f"j{n}", U1, NEED, b"")]) for n in range(200)]
    moves(cluster, name)
    assert {type(put) for [put] in await asyncio.gather(*puts)} == {Put}
    assert await parked == [], "who waits at the old node is sent away and waits at the new one"
    waiting = asyncio.create_task(store.park("w", 30))
    assert (await store.status()).waiting == 200
    shift = await store.join("w", 300, [NEED])
    told = len(shift.starts)
    await store.put([Order("last", U1, NEED, b"")])
    assert told + len(await waiting) >= 200
    assert await store.check() == []


async def test_a_script_waits_for_a_slot_that_moves_key_by_key_and_a_single_key_goes_along(
    cluster: Nodes, stores: Stores
) -> None:
    name = cluster.queue_on(cluster.nodes[1], "leaving")
    where, old, new = slot(keys.floor(name)), cluster.nodes[1], cluster.nodes[2]
    with pytest.raises(UnknownQueue):
        await stores.queue(name).status()
    new.says("FUNCTION", "FLUSH")
    new.says("CLUSTER", "SETSLOT", where, "IMPORTING", old.says("CLUSTER", "MYID"))
    old.says("CLUSTER", "SETSLOT", where, "MIGRATING", new.says("CLUSTER", "MYID"))
    with contextlib.closing(Cluster(Site.read(cluster.url))) as board:
        assert await board.call(f"{{{name}}}", "SET", f"{{{name}}}", "1") == b"OK"
        assert [node.says("CLUSTER", "COUNTKEYSINSLOT", where) for node in (old, new)] == [0, 1]
    configured = asyncio.create_task(stores.queue(name).configure(Settings()))
    assert not (await asyncio.wait([configured], timeout=0.05))[0]
    for node in (new, old):
        node.says("CLUSTER", "SETSLOT", where, "NODE", new.says("CLUSTER", "MYID"))
    await configured
    [put] = await stores.queue(name).put([Order("a", U1, NEED, b"")])
    assert isinstance(put, Put)


async def test_one_node_that_may_evict_is_enough_to_be_refused(cluster: Nodes, stores: Stores) -> None:
    cluster.nodes[2].says("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(EvictionForbidden):
            await stores.queue("q").configure(Settings())
    finally:
        cluster.nodes[2].says("CONFIG", "SET", "maxmemory-policy", "noeviction")


async def test_a_server_that_is_in_no_cluster_says_so(tmp_path: Path) -> None:
    [port] = free_ports(1)
    node = Node(Servers.binary("redis"), tmp_path / "alone", port)
    node.launch()
    stores = ValkeyStores(f"valkey+cluster://{HOST}:{port}")
    try:
        await node.answers()
        with pytest.raises(StoreError, match="cluster support disabled"):
            await stores.queue("q").configure(Settings())
    finally:
        await stores.close()
        node.clear()
