"""What a server may do to us, and how that is told: other schemas, lost scripts, no memory, eviction."""

import asyncio
import re
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from maitred.core.job import Finish, Order, Put
from maitred.core.settings import Settings
from maitred.errors import EvictionForbidden, SchemaMismatch, StoreError, StoreUnavailable, UnknownQueue
from maitred.store.connect import connect
from maitred.store.port import Store, Stores
from maitred.store.valkey import keys, scripts
from maitred.store.valkey.embedded import Embedded
from tests.conformance.party import NEED, U1
from tests.conftest import SERVERS, Servers


@pytest.fixture(params=SERVERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def own_server(servers: Servers, kind: str, tmp_path: Path) -> AsyncIterator[Embedded]:
    """A server that the test may spoil."""
    with Embedded(tmp_path / "data", binary=servers.binary(kind)) as server:
        yield server


@pytest.fixture
async def own_stores(own_server: Embedded) -> AsyncIterator[Stores]:
    stores = connect(own_server.url)
    yield stores
    await stores.close()


@pytest.fixture
async def client(own_server: Embedded) -> AsyncIterator["Redis"]:
    client = Redis.from_url(own_server.url)
    yield client
    await client.aclose()


async def test_a_queue_that_nobody_configured_is_unknown(stores: Stores) -> None:
    with pytest.raises(UnknownQueue, match="nowhere"):
        await stores.queue("nowhere").put([Order("a", U1, NEED, b"")])


async def test_another_schema_is_refused(own_stores: Stores, client: "Redis") -> None:
    store = own_stores.queue("q")
    await store.configure(Settings())
    floor: Any = await client.get(keys.floor("q"))
    await client.set(keys.floor("q"), struct.pack("<d", 999) + floor[8:])
    with pytest.raises(SchemaMismatch, match="999"):
        await store.put([Order("a", U1, NEED, b"")])
    with pytest.raises(SchemaMismatch):
        await store.configure(Settings())


async def test_scripts_that_the_server_lost_are_loaded_again(own_stores: Stores, client: "Redis") -> None:
    store = own_stores.queue("q")
    await store.configure(Settings())
    await client.execute_command("FUNCTION", "FLUSH")  # type: ignore[no-untyped-call]
    [put] = await store.put([Order("a", U1, NEED, b"")])
    assert isinstance(put, Put)


async def test_a_server_that_may_evict_is_refused(own_stores: Stores, client: "Redis") -> None:
    await client.config_set("maxmemory-policy", "allkeys-lru")
    with pytest.raises(EvictionForbidden):
        await own_stores.queue("q").configure(Settings())


async def test_a_server_out_of_memory_takes_no_more_and_still_lets_work_end(
    own_stores: Stores, client: "Redis"
) -> None:
    store = own_stores.queue("q")
    await store.configure(Settings())
    await store.put([Order("a", U1, NEED, b""), Order("b", U1, NEED, b"")])
    [start] = (await store.join("w", 1, [NEED])).starts
    await client.config_set("maxmemory", 1)
    with pytest.raises(StoreError, match="put: OOM"):
        await store.put([Order("c", U1, NEED, b"")])
    shift = await store.finish("w", [Finish(start.lease)])
    assert [start.id for start in shift.starts] == ["a"]
    await store.remove("a")
    await store.tick()
    assert await store.check() == []


async def test_a_server_that_is_gone_is_unavailable(own_server: Embedded, own_stores: Stores) -> None:
    store = own_stores.queue("q")
    await store.configure(Settings())
    own_server.stop()
    with pytest.raises(StoreUnavailable):
        await store.tick()
    own_server.start()


async def test_submits_made_together_travel_together(own_stores: Stores, client: "Redis") -> None:
    await own_stores.queue("q").configure(Settings())
    await client.config_resetstat()
    puts = await asyncio.gather(
        *(own_stores.queue("q").put([Order(f"j{n}", U1, NEED, b"")]) for n in range(300))
    )
    assert [type(put) for [put] in puts] == [Put] * 300
    calls = (await client.info("commandstats"))["cmdstat_fcall"]["calls"]
    assert calls <= 5
    line = await own_stores.queue("q").line(None, 500)
    assert [view.job.id for view in line.views] == [f"j{n}" for n in reversed(range(300))]


async def test_submits_that_travelled_together_all_hear_that_the_store_is_gone(
    own_server: Embedded, own_stores: Stores
) -> None:
    store = own_stores.queue("q")
    await store.configure(Settings())
    own_server.stop()
    answers = await asyncio.gather(
        *(store.put([Order(f"j{n}", U1, NEED, b"")]) for n in range(20)), return_exceptions=True
    )
    assert {type(answer) for answer in answers} == {StoreUnavailable}
    own_server.start()


async def test_two_queues_on_one_server_do_not_meet(stores: Stores, store: Store, queue_name: str) -> None:
    other = stores.queue(f"{queue_name}-2")
    await other.configure(Settings())
    await store.put([Order("a", U1, NEED, b"")])
    assert (await other.status()).waiting == 0
    assert {queue_name, f"{queue_name}-2"} <= set(await stores.names())


def test_every_key_of_a_queue_has_its_hash_tag() -> None:
    assert keys.floor("q") == "maitred:{q}:Floor"
    assert keys.inbox("q", "w").startswith(keys.prefix("q"))


@pytest.mark.parametrize("verb", scripts.verbs())
def test_every_verb_has_a_contract(verb: str) -> None:
    header = scripts.verbs()[verb]
    assert header.startswith(f"-- {verb}: ")
    for part in ("args: now, dice", "answers: ", "flags:"):
        assert re.search(f"^-- {part}", header, re.MULTILINE), f"{verb} does not say its {part}"
    assert f"verb.{verb} = function(keys, args)" in header


async def test_a_lease_is_not_searched_for_in_a_list(own_stores: Stores, client: "Redis") -> None:
    store = own_stores.queue("q")
    await store.configure(Settings())
    await store.join("w", 8, [NEED])
    await store.put([Order(f"{n}", U1, NEED, b"") for n in range(8)])
    leases = f"{keys.prefix('q')}{keys.NAMES['Leases']}w"
    assert await client.hlen(leases) == 8
    assert await client.object("ENCODING", leases) == b"hashtable"
