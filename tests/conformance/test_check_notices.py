"""`check` finds damage to what submitters are to be told, names it, and repairs it."""

import struct
from collections.abc import Callable
from typing import Any

import pytest
from redis.asyncio import Redis

from maitred.core.job import Finish, Order
from maitred.core.notices import Delivery
from maitred.core.settings import MINUTE, SECOND, Settings
from maitred.store.port import Store
from maitred.store.valkey import keys
from tests.conformance.damage import every, found, healed
from tests.conformance.party import NEED, U1
from tests.conftest import SERVERS

GHOST = b"\0\0\0\0\0\0\0\7"
TOKEN = b"t" * 16
FLOOR, ABANDON_AT = "<29d", 22  # a queue with one class and one stage

Key = Callable[[str], str]


@pytest.fixture(params=SERVERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def key(store: Store) -> Key:
    """A queue with jobs that have told some, all or nothing, and some that are given up in a while."""
    await store.configure(Settings(lease=60 * MINUTE))
    shift = await store.join("w", 3, [NEED])
    await store.put([Order(id, U1, NEED, b"", callback=True) for id in ("some", "all", "nothing")])
    shift = await store.renew("w", [])
    await store.finish("w", [Finish(start.lease) for start in shift.starts])
    while errands := await store.lock_notices("server", TOKEN, 10):
        for view, notice in errands:
            again = 1 if view.job.id == "nothing" or (view.job.id, notice.kind) == ("some", "ended") else 0
            at = view.now + 60 * MINUTE if again else 0
            tried = Delivery(notice.number, notice.kind, view.now, 0, "again" if again else "sent", "", 1, at)
            await store.told_notice(view.job.record, notice.number, TOKEN, tried)
    await store.put([Order("given up", U1, NEED, b"", delay=60 * SECOND, abandon=90 * SECOND)])
    await store.put([Order("plain", U1, NEED, b"", delay=60 * SECOND)])
    assert await store.check() == []
    prefix = keys.prefix(store.queue)
    return lambda name: prefix + name


async def record_of(server: "Redis", key: Key, id: str) -> Any:
    return await server.hget(key("Ids"), id)


async def lost_list(server: "Redis", key: Key) -> None:
    await server.delete(key("Notices.nothing"))


async def lost_notice(server: "Redis", key: Key) -> None:
    await server.lpop(key("Notices.nothing"))


async def strange_notice(server: "Redis", key: Key) -> None:
    notice: Any = await server.lindex(key("Notices.some"), 0)
    await server.rpush(key("Notices.some"), GHOST + notice[8:])


async def notice_of_another(server: "Redis", key: Key) -> None:
    notice: Any = await server.lindex(key("Notices.some"), 0)
    await server.rpush(key("Notices.plain"), notice)


async def notice_twice(server: "Redis", key: Key) -> None:
    notice: Any = await server.lindex(key("Notices.some"), 0)
    await server.rpush(key("Notices.some"), notice)


async def lost_moment(server: "Redis", key: Key) -> None:
    await server.zrem(key("NoticesDue"), "some")


async def strange_moment(server: "Redis", key: Key) -> None:
    await server.zadd(key("NoticesDue"), {"all": 7})


async def strange_lock(server: "Redis", key: Key) -> None:
    await server.hset(key("NoticeHeads"), "plain", struct.pack("<HBH", 1, 0, 0))


async def lost_extras(server: "Redis", key: Key) -> None:
    await server.hdel(key("Jobs"), b"x" + await record_of(server, key, "nothing"))


async def strange_log(server: "Redis", key: Key) -> None:
    await server.hset(key("Jobs"), b"n" + GHOST, b"")


async def lost_deadline(server: "Redis", key: Key) -> None:
    await server.zrem(key("Abandon"), await record_of(server, key, "given up"))


async def strange_deadline(server: "Redis", key: Key) -> None:
    await server.zadd(key("Abandon"), {GHOST: 7})


async def deadline_of_another(server: "Redis", key: Key) -> None:
    await server.zadd(key("Abandon"), {await record_of(server, key, "plain"): 7})


async def late_look(server: "Redis", key: Key) -> None:
    written: Any = await server.get(key("Floor"))
    values = list(struct.unpack(FLOOR, written))
    values[ABANDON_AT] += SECOND
    await server.set(key("Floor"), struct.pack(FLOOR, *values))


DAMAGE = {
    "notices": [
        lost_list,
        lost_notice,
        strange_notice,
        notice_of_another,
        notice_twice,
        lost_moment,
        strange_moment,
        strange_lock,
        lost_extras,
        strange_log,
    ],
    "abandon": [lost_deadline, strange_deadline, deadline_of_another, late_look],
}


@every(DAMAGE)
async def test_damage_is_found_named_and_repaired(
    store: Store, server: "Redis", key: Key, code: str, damage: Any
) -> None:
    await damage(server, key)
    assert code in await found(store)
    await healed(store)


async def test_a_healthy_outbox_has_nothing_to_find_or_repair(store: Store, key: Key) -> None:
    before = await store.snapshot()
    assert await store.check(repair=True) == []
    assert await store.snapshot() == before
