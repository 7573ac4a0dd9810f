"""`check` finds each kind of damage on a live store, names it, and repairs what can be repaired."""

import asyncio
import struct
from typing import Any

import pytest
from redis.asyncio import Redis

from maitred.core.classes import DurationClass
from maitred.core.job import Band, Finish, Order, Submitter
from maitred.core.settings import SECOND, Settings
from maitred.store.port import Store
from maitred.store.valkey import keys
from tests.conformance.damage import every, found, healed
from tests.conformance.party import NEED, U1, U2, U7
from tests.conftest import SERVERS, Clock

WHO = "user.1"
FLOOR, COUNTS = "<30d", 25  # a queue with two classes and one stage
LANE = f"2.05.01.{NEED}"


@pytest.fixture(params=SERVERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def key(store: Store, clock: Clock) -> Any:
    """A queue with jobs in every state; gives the full name of a key."""
    caps = {"fast": 3, "slow": 30}
    classes = tuple(DurationClass(name, cap * SECOND) for name, cap in caps.items())
    await store.configure(Settings(classes=classes))
    await store.put([Order(f"j{n}", U1, NEED, b"", delay=n * SECOND) for n in range(5)])
    await store.put([Order("gone", U7, NEED, b"", band=Band.IMMEDIATE)])
    await store.put([Order("front", U2, NEED, b""), Order("now", U2, NEED, b"", band=Band.IMMEDIATE)])
    await store.put([Order("old", U7, NEED, b"", delay=60 * SECOND, expires_at=clock.now + 900 * SECOND)])
    await store.release("front")
    shift = await store.join("w", 4, [NEED])
    await store.finish("w", [Finish(shift.starts[0].lease)])
    await store.cancel("gone", "")
    await store.put([Order("front", U2, NEED, b"", delay=60 * SECOND)])
    await store.put([Order("own", U1, NEED, b"", delay=60 * SECOND)])
    await store.put([Order("own", U1, NEED, b"", delay=60 * SECOND, priority=7)])
    assert await store.check() == []
    prefix = keys.prefix(store.queue)
    return lambda name: prefix + name


async def first(server: "Redis", key: str) -> Any:
    return (await server.zrange(key, 0, 0))[0]


async def test_a_healthy_queue_has_nothing_to_find_or_repair(store: Store, key: Any) -> None:
    before = await store.snapshot()
    assert await store.check(repair=True) == []
    assert await store.snapshot() == before


async def lost_place(server: "Redis", key: Any) -> None:
    place = await first(server, key(f"Reservations.{LANE}"))
    await server.zrem(key(f"Reservations.{LANE}"), place)


async def lost_nonce(server: "Redis", key: Any) -> None:
    await server.zpopmin(key(f"Nonces.{LANE}/{WHO}"))


async def lost_stack_entry(server: "Redis", key: Any) -> None:
    await server.zpopmin(key(f"SubmitterInfo.{LANE}/{WHO}"))


async def strange_stack_entry(server: "Redis", key: Any) -> None:
    await server.zadd(key(f"SubmitterInfo.{LANE}/{WHO}"), {b"\0\0\0\0\0\0\0\7": 1})


async def lost_own_place(server: "Redis", key: Any) -> None:
    await server.zpopmin(key(f"Reservations.2.07.01.{NEED}"))


async def strange_own_place(server: "Redis", key: Any) -> None:
    await server.zadd(key(f"Reservations.{LANE}"), {b"\0" * 16 + b"J\0\0\0\0\0\0\0\7": 0})


async def lost_own_entry(server: "Redis", key: Any) -> None:
    await server.delete(key(f"Own.{WHO}"))


async def strange_own_entry(server: "Redis", key: Any) -> None:
    await server.zadd(key(f"Own.{WHO}"), {b"\0\0\0\0\0\0\0\7": 1})


async def lost_id(server: "Redis", key: Any) -> None:
    await server.hdel(key("Ids"), "j3")


async def strange_id(server: "Redis", key: Any) -> None:
    await server.hset(key("Ids"), "ghost", b"\0\0\0\0\0\0\0\7")


async def lost_end(server: "Redis", key: Any) -> None:
    await server.zpopmin(key("Ended"))


async def strange_end(server: "Redis", key: Any) -> None:
    await server.zadd(key("Ended"), {b"\0\0\0\0\0\0\0\7": 1})


async def lost_expiry(server: "Redis", key: Any) -> None:
    await server.delete(key("Expiry"))


async def strange_expiry(server: "Redis", key: Any) -> None:
    await server.zadd(key("Expiry"), {b"\0\0\0\0\0\0\0\7": 2**52})


async def running_record(server: "Redis", key: Any) -> Any:
    for record in await server.hkeys(key("Leases.w")):
        if (await server.hget(key("Jobs"), record) or b"")[:1] == b"R":
            return record
    raise AssertionError("nothing runs")


async def lost_lease(server: "Redis", key: Any) -> None:
    await server.hdel(key("Leases.w"), await running_record(server, key))


async def strange_lease(server: "Redis", key: Any) -> None:
    lease: Any = await server.hget(key("Leases.w"), await running_record(server, key))
    await server.hset(key("Leases.w"), b"\0\0\0\0\0\0\0\7", lease)


async def wrong_free_slots(server: "Redis", key: Any) -> None:
    await server.zadd(key("Free.1"), {"w": 3})


async def lost_worker(server: "Redis", key: Any) -> None:
    await server.zadd(key("Workers"), {"ghost": 2**52})


async def immortal_worker(server: "Redis", key: Any) -> None:
    await server.zrem(key("Workers"), "w")


async def lost_lane(server: "Redis", key: Any) -> None:
    await server.delete(key("Lanes"))


async def raw(server: "Redis", key: str) -> Any:
    return await server.get(key)


async def change_floor(server: "Redis", key: Any, field: int) -> None:
    values = list(struct.unpack(FLOOR, await raw(server, key("Floor"))))
    values[field] += 1
    await server.set(key("Floor"), struct.pack(FLOOR, *values))


async def older_newest(server: "Redis", key: Any) -> None:
    """The job that ended was put again; its id now leads to the old version."""
    ended: Any = (await server.zrange(key("Ended"), 0, 0))[0]
    await server.hset(key("Ids"), "front", ended)


async def ghost_with_free_slots(server: "Redis", key: Any) -> None:
    await server.zadd(key("Free.1"), {"ghost": 3})


async def swapped_state_counts(server: "Redis", key: Any) -> None:
    await change_floor(server, key, COUNTS + 2)
    values = list(struct.unpack(FLOOR, await raw(server, key("Floor"))))
    values[COUNTS + 3] -= 1
    await server.set(key("Floor"), struct.pack(FLOOR, *values))


async def wrong_total(server: "Redis", key: Any) -> None:
    await change_floor(server, key, 3)


async def wrong_free_total(server: "Redis", key: Any) -> None:
    await change_floor(server, key, 5)


async def wrong_state_count(server: "Redis", key: Any) -> None:
    await change_floor(server, key, COUNTS)


async def wrong_live_slots(server: "Redis", key: Any) -> None:
    await change_floor(server, key, 10)


async def wrong_stops(server: "Redis", key: Any) -> None:
    await change_floor(server, key, 11)


async def wrong_elastics(server: "Redis", key: Any) -> None:
    await change_floor(server, key, 13)


async def wrong_level(server: "Redis", key: Any) -> None:
    await change_floor(server, key, COUNTS - 1)


async def lost_elastic(server: "Redis", key: Any) -> None:
    await server.zpopmin(key("Yielding.1/1"))


async def strange_elastic(server: "Redis", key: Any) -> None:
    await server.zadd(key("Yielding.1/2"), {b"\0\0\0\0\0\0\0\7w": 1})


async def lost_credit(server: "Redis", key: Any) -> None:
    await server.zpopmin(key("Credit.1"))


async def strange_stop(server: "Redis", key: Any) -> None:
    await server.hset(key("Stopping"), b"\0\0\0\0\0\0\0\7", "ghost")
    await server.hset(key("Stopping"), b"ighost", 1)


async def lost_stop(server: "Redis", key: Any) -> None:
    await server.delete(key("Stopping"))


DAMAGE = {
    "nonces": [lost_place, lost_nonce],
    "place": [lost_own_place, strange_own_place, lost_stack_entry],
    "stack": [strange_stack_entry],
    "own": [lost_own_entry, strange_own_entry],
    "waiting": [wrong_total],
    "ids": [lost_id, strange_id, older_newest],
    "ended": [lost_end, strange_end],
    "expiry": [lost_expiry, strange_expiry],
    "state": [lost_lease],
    "lease": [strange_lease],
    "slots": [wrong_free_slots, wrong_free_total, ghost_with_free_slots],
    "worker": [lost_worker, immortal_worker],
    "lanes": [lost_lane],
    "levels": [wrong_live_slots, wrong_stops, wrong_elastics, wrong_level],
    "elastic": [lost_elastic, strange_elastic, lost_credit],
    "stops": [strange_stop, lost_stop],
    "counts": [wrong_state_count, swapped_state_counts],
}


@every(DAMAGE)
async def test_damage_is_found_named_and_repaired(
    store: Store, server: "Redis", key: Any, code: str, damage: Any
) -> None:
    await damage(server, key)
    assert code in await found(store)
    await healed(store)


async def test_a_lost_configuration_is_named_and_cannot_be_repaired(
    store: Store, server: "Redis", key: Any
) -> None:
    fields: list[Any] = await server.hkeys(key("Jobs"))
    body = next(field for field in fields if field[:1] == b"b")
    await server.hdel(key("Jobs"), body)
    [violation] = await store.check(repair=True)
    assert (violation.code, violation.repaired) == ("body", False)


async def test_check_looks_at_long_stacks_page_by_page(store: Store, server: "Redis", key: Any) -> None:
    for first_of in range(0, 1000, 100):
        await store.put([Order(f"many{n}", U1, NEED, b"") for n in range(first_of, first_of + 100)])
    seen: dict[str, int] = {}
    assert await store.check(progress=seen.__setitem__) == []
    assert seen["jobs"] >= 1000
    last: Any = (await server.zrange(key(f"Nonces.{LANE}/{WHO}"), -1, -1))[0]
    await server.zrem(key(f"Nonces.{LANE}/{WHO}"), last)
    assert {violation.code for violation in await store.check()} == {"nonces", "place"}


async def test_check_runs_beside_live_work_and_finds_nothing(store: Store, key: Any) -> None:
    async def work() -> None:
        for n in range(60):
            await store.put([Order(f"live{n}-{i}", Submitter("user", str(i)), NEED, b"") for i in range(20)])
            shift = await store.take("w")
            await store.finish("w", [Finish(start.lease) for start in shift.starts])

    async def check() -> list[Any]:
        return [fault for _ in range(10) for fault in await store.check()]

    _, found = await asyncio.gather(work(), check())
    assert found == []
