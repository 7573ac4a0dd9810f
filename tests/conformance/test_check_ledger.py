"""B24: `check` finds each kind of damage to the Ledger on a live store, names it, and repairs what it can."""

import asyncio
import struct
from collections.abc import Callable
from typing import Any

import pytest
from redis.asyncio import Redis

from maitred.core.batch import BatchOrder
from maitred.core.job import Finish, Lease, Order, Submitter
from maitred.core.settings import MINUTE, SECOND, Settings
from maitred.store.port import Store
from maitred.store.valkey import keys
from tests.conformance.damage import every, found, healed
from tests.conformance.party import U1, U2, U7
from tests.conftest import SERVERS

STAGES = ("one", "provisioning", "three")
NEEDS = [f"stage:{stage}" for stage in STAGES]
FLOOR = "<31d"  # a queue with one class and three stages
FLAGS, RETURNING, SPACE, TRASH = 17, 18, 19, 21
COUNTS_AT, ROWS_AT = 50, 98  # in the head of a batch
JOB_FLAGS_AT, PROVISIONED = 5, 32
GHOST = b"\0\0\0\0\0\0\0\7"
TOKEN = b"t" * 16
WORKING, EXPANDING, REPORTED, HELD = (f"bid000000000{n}" for n in range(4))

Key = Callable[[str], str]


@pytest.fixture(params=SERVERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def order(id: str, who: Submitter = U1, **more: Any) -> Order:
    return Order(id, who, NEEDS[0], b"", **more)


async def finish(store: Store, id: str, **said: Any) -> None:
    """Let the worker end a stage of a running job."""
    running = {view.job.id: view.job for view in await store.running()}
    snapshot = await store.snapshot()
    [hold] = [hold for hold in snapshot.workers["w"].holds if hold.record == running[id].record]
    await store.finish("w", [Finish(Lease(hold.record, hold.token), **said)])


async def work_on_a_batch(store: Store) -> None:
    """Fill the first batch: one job has space and runs, one ended, one waits, one was deleted."""
    await store.put([order(id, batch=WORKING, profile="p", label=b"l") for id in ("runs", "ends", "goes")])
    await finish(store, "runs", space=40)
    for _ in STAGES:
        await finish(store, "ends")
    await store.remove("goes")
    await store.put([order("waits", batch=WORKING, delay=60 * SECOND)])


async def report_a_batch(store: Store) -> None:
    """Let the third batch end, and store its report."""
    await store.put([order("told", batch=REPORTED)])
    await store.seal_batch(REPORTED)
    await finish(store, "told", code="error")
    while (errand := await store.lock_batch("s", TOKEN)) and errand.batch.id != REPORTED:
        pass
    await store.report_batch(REPORTED, TOKEN, b"report", send=True)


@pytest.fixture
async def key(store: Store) -> Key:
    """A queue with batches and held jobs in every state; gives the full name of a key."""
    await store.configure(Settings(stages=STAGES, space=100, lease=60 * MINUTE))
    for external in ("working", "expanding", "reported", "held"):
        kept = external == "expanding"
        await store.create_batch(BatchOrder(external, U1, "p", b"sent", expanding=kept, sealed=False))
    await store.join("w", 5, NEEDS)
    await work_on_a_batch(store)
    await report_a_batch(store)
    await store.hold("batch", HELD, "ann", "")
    await store.put([order("own", delay=60 * SECOND), order("free", exempt=True, delay=60 * SECOND)])
    await store.hold("job", "own", "ann", "")
    await store.hold("submitter", str(U2), "ann", "")
    await store.hold("profile", "q", "ann", "")
    await store.put([order("kept", U2), order("kept twice", U2, profile="q")])
    assert (await store.held(0, 10)).total == 3
    assert await store.check() == []
    prefix = keys.prefix(store.queue)
    return lambda name: prefix + name


async def test_b24_a_healthy_ledger_has_nothing_to_find_or_repair(store: Store, key: Key) -> None:
    before = await store.snapshot()
    assert await store.check(repair=True) == []
    assert await store.snapshot() == before


async def record_of(server: "Redis", key: Key, id: str) -> Any:
    return await server.hget(key("Ids"), id)


async def change_floor(server: "Redis", key: Key, field: int) -> None:
    written: Any = await server.get(key("Floor"))
    values = list(struct.unpack(FLOOR, written))
    values[field] += 1
    await server.set(key("Floor"), struct.pack(FLOOR, *values))


async def change_head(server: "Redis", key: Key, id: str, at: int, value: float | bytes) -> None:
    head: Any = await server.hget(key("Batches"), id)
    changed = bytearray(head)
    struct.pack_into("<c" if isinstance(value, bytes) else "<d", changed, at, value)
    await server.hset(key("Batches"), id, bytes(changed))


async def unlisted_held_job(server: "Redis", key: Key) -> None:
    await server.zrem(key("Held"), await record_of(server, key, "kept"))


async def strange_held_job(server: "Redis", key: Key) -> None:
    await server.zadd(key("Held"), {GHOST: 7})


async def waiting_job_listed_as_held(server: "Redis", key: Key) -> None:
    await server.zadd(key("Held"), {await record_of(server, key, "free"): 7})


async def lost_reason(server: "Redis", key: Key) -> None:
    await server.zrem(key(f"HeldBy.submitter:{U2}"), await record_of(server, key, "kept"))


async def two_reasons(server: "Redis", key: Key) -> None:
    """A job is listed by each of two holds that concern it."""
    await server.zadd(key("HeldBy.profile:q"), {await record_of(server, key, "kept twice"): 7})


async def reason_of_another(server: "Redis", key: Key) -> None:
    """A job is listed by a hold that does not concern it."""
    await server.zadd(key("HeldBy.profile:q"), {await record_of(server, key, "kept"): 7})


async def strange_reason(server: "Redis", key: Key) -> None:
    await server.zadd(key(f"HeldBy.submitter:{U2}"), {GHOST: 7})


async def lost_hold(server: "Redis", key: Key) -> None:
    await server.hdel(key("Holds"), f"submitter:{U2}")


async def strange_outbox(server: "Redis", key: Key) -> None:
    await server.zadd(key("Outbox"), {GHOST: 7})


async def wrong_flags(server: "Redis", key: Key) -> None:
    await change_floor(server, key, FLAGS)


async def wrong_returning(server: "Redis", key: Key) -> None:
    await change_floor(server, key, RETURNING)


async def wrong_space(server: "Redis", key: Key) -> None:
    await change_floor(server, key, SPACE)


async def space_after_the_end(server: "Redis", key: Key) -> None:
    record = await record_of(server, key, "told")
    head: Any = await server.hget(key("Jobs"), record)
    changed = bytearray(head)
    changed[JOB_FLAGS_AT] |= PROVISIONED
    await server.hset(key("Jobs"), record, bytes(changed))


async def wrong_exempt(server: "Redis", key: Key) -> None:
    await server.hincrby(key("Exempt"), str(U1), 1)


async def strange_exempt(server: "Redis", key: Key) -> None:
    await server.hset(key("Exempt"), str(U7), 1)


async def lost_exempt(server: "Redis", key: Key) -> None:
    await server.delete(key("Exempt"))


async def lost_kept(server: "Redis", key: Key) -> None:
    await server.zrem(key("Kept"), await record_of(server, key, "told"))


async def swept_alone(server: "Redis", key: Key) -> None:
    """An ended job of a batch would be swept before its batch."""
    await server.zadd(key("Ended"), {await record_of(server, key, "told"): 7})


async def strange_kept(server: "Redis", key: Key) -> None:
    await server.zadd(key("Kept"), {GHOST: 7})


async def unlisted_batch(server: "Redis", key: Key) -> None:
    await server.zrem(key("BatchList"), WORKING)


async def ageless_batch(server: "Redis", key: Key) -> None:
    await server.zrem(key("BatchAge"), WORKING)


async def forgotten_work(server: "Redis", key: Key) -> None:
    await server.zrem(key("BatchWork"), EXPANDING)


async def needless_work(server: "Redis", key: Key) -> None:
    await server.zadd(key("BatchWork"), {WORKING: 0})


async def forgotten_report(server: "Redis", key: Key) -> None:
    await server.zrem(key("BatchSend"), REPORTED)


async def strange_list_entry(server: "Redis", key: Key) -> None:
    await server.zadd(key("BatchList"), {"bid0000000099": 99})


async def strange_work(server: "Redis", key: Key) -> None:
    await server.zadd(key("BatchWork"), {"bid0000000099": 99})


async def lost_external_id(server: "Redis", key: Key) -> None:
    await server.hdel(key("BatchIds"), "working")


async def strange_external_id(server: "Redis", key: Key) -> None:
    await server.hset(key("BatchIds"), "ghost", WORKING)


async def strange_submission(server: "Redis", key: Key) -> None:
    await server.hset(key("Batches"), "sbid0000000099", b"sent")


async def wrong_trash(server: "Redis", key: Key) -> None:
    await change_floor(server, key, TRASH)


async def lost_row(server: "Redis", key: Key) -> None:
    await server.hdel(key(f"BatchRows.{WORKING}"), "runs")


async def unlisted_row(server: "Redis", key: Key) -> None:
    await server.zrem(key(f"BatchJobs.{WORKING}"), "runs")


async def unlisted_deleted_row(server: "Redis", key: Key) -> None:
    await server.zrem(key(f"BatchJobs.{WORKING}"), "goes")


async def strange_row(server: "Redis", key: Key) -> None:
    await server.zadd(key(f"BatchJobs.{WORKING}"), {"ghost": 9})


async def rows_of_no_batch(server: "Redis", key: Key) -> None:
    await server.zadd(key("BatchJobs.bid0000000099"), {"ghost": 1})


async def row_of_another(server: "Redis", key: Key) -> None:
    """A row leads to a job that is not its own."""
    row: Any = await server.hget(key(f"BatchRows.{WORKING}"), "runs")
    await server.hset(key(f"BatchRows.{WORKING}"), "runs", await record_of(server, key, "own") + row[8:])


async def wrong_number_of_rows(server: "Redis", key: Key) -> None:
    await change_head(server, key, WORKING, ROWS_AT, 9)


async def job_outside_its_batch(server: "Redis", key: Key) -> None:
    """A job no longer knows the batch that lists it."""
    field = b"x" + await record_of(server, key, "runs")
    extra: Any = await server.hget(key("Jobs"), field)
    await server.hset(key("Jobs"), field, struct.pack("<H", 0) + extra[2 + len(WORKING) :])


async def wrong_bucket(server: "Redis", key: Key) -> None:
    await change_head(server, key, WORKING, COUNTS_AT, 7)


async def wrong_deleted(server: "Redis", key: Key) -> None:
    await change_head(server, key, REPORTED, COUNTS_AT + 40, 7)


async def held_by_nobody(server: "Redis", key: Key) -> None:
    await change_head(server, key, WORKING, 0, b"h")


async def goes_on_while_held(server: "Redis", key: Key) -> None:
    await change_head(server, key, HELD, 0, b"p")


async def pending_with_jobs(server: "Redis", key: Key) -> None:
    await change_head(server, key, WORKING, 0, b"p")


async def hold_of_an_ended_batch(server: "Redis", key: Key) -> None:
    await server.hset(key("Holds"), f"batch:{REPORTED}", b"7 {}")
    await change_floor(server, key, FLAGS)


async def hold_of_no_batch(server: "Redis", key: Key) -> None:
    await server.hset(key("Holds"), "batch:bid0000000099", b"7 {}")
    await change_floor(server, key, FLAGS)


DAMAGE = {
    "held": [
        unlisted_held_job,
        strange_held_job,
        waiting_job_listed_as_held,
        lost_reason,
        two_reasons,
        reason_of_another,
        strange_reason,
        lost_hold,
        wrong_flags,
        wrong_returning,
    ],
    "outbox": [strange_outbox],
    "space": [wrong_space, space_after_the_end],
    "exempt": [wrong_exempt, strange_exempt, lost_exempt],
    "ended": [lost_kept, swept_alone, strange_kept],
    "batch-list": [
        unlisted_batch,
        ageless_batch,
        forgotten_work,
        needless_work,
        forgotten_report,
        strange_list_entry,
        strange_work,
        lost_external_id,
        strange_external_id,
        strange_submission,
        wrong_trash,
    ],
    "batch-row": [
        lost_row,
        unlisted_row,
        unlisted_deleted_row,
        strange_row,
        rows_of_no_batch,
        row_of_another,
        wrong_number_of_rows,
    ],
    "batch-counts": [wrong_bucket, wrong_deleted],
    "batch-state": [
        held_by_nobody,
        goes_on_while_held,
        pending_with_jobs,
        hold_of_an_ended_batch,
        hold_of_no_batch,
    ],
}


@every(DAMAGE)
async def test_b24_one_fault_of_a_kind_is_found_as_that_and_repaired(
    store: Store, server: "Redis", key: Key, code: str, damage: Any
) -> None:
    await damage(server, key)
    assert await found(store) == {code}
    await healed(store)


async def test_b24_a_job_that_lost_its_batch_gets_it_back(store: Store, server: "Redis", key: Key) -> None:
    await job_outside_its_batch(server, key)
    assert {violation.code for violation in await store.check()} == {"batch-row", "batch-counts"}
    await healed(store)
    [view] = await store.read(["runs"])
    assert view
    assert view.job.batch == WORKING


async def test_b24_what_is_held_by_nothing_goes_on(store: Store, server: "Redis", key: Key) -> None:
    await lost_hold(server, key)
    await healed(store)
    await store.tick()
    assert {view.job.id for view in await store.running()} == {"runs", "kept"}
    assert [view.job.id for view in (await store.held(0, 10)).views] == ["own", "kept twice"]


async def test_b24_the_jobs_of_a_lost_batch_stay_as_jobs_without_one(
    store: Store, server: "Redis", key: Key
) -> None:
    await server.hdel(key("Batches"), WORKING)
    found = {violation.code for violation in await store.check()}
    assert found == {"batch-row", "batch-list"}
    await healed(store)
    views = await store.read(["runs", "ends", "waits"])
    assert [view.job.batch for view in views if view] == ["", "", ""]


async def test_b24_a_job_that_lost_what_the_ledger_knows_is_named_and_goes_on(
    store: Store, server: "Redis", key: Key
) -> None:
    await server.hdel(key("Jobs"), b"x" + await record_of(server, key, "waits"))
    assert "body" in {violation.code for violation in await store.check()}
    await healed(store)
    await store.cancel("waits", "")


async def test_b24_a_lost_submission_is_named_and_cannot_be_repaired(
    store: Store, server: "Redis", key: Key
) -> None:
    await server.hdel(key("Batches"), f"s{WORKING}")
    [violation] = await store.check(repair=True)
    assert (violation.code, violation.repaired) == ("body", False)


async def test_b24_a_deleted_batch_that_still_has_jobs_is_no_fault(store: Store, key: Key) -> None:
    batch = (await store.create_batch(BatchOrder("", U1, "", b"", expanding=False, sealed=False))).id
    await store.pause("ann", "")
    await store.put([order(f"many{n}", batch=batch) for n in range(450)])
    for n in range(450):
        await store.cancel(f"many{n}", "")
    await store.seal_batch(batch)
    while (errand := await store.lock_batch("s", TOKEN)) and errand.batch.id != batch:
        pass
    await store.report_batch(batch, TOKEN, b"report", send=False)
    await store.remove_batch(batch)
    assert (await store.snapshot()).trash
    assert await store.check() == []
    while (await store.snapshot()).trash:
        await store.tick()
        assert await store.check() == []


async def test_b24_what_is_too_long_to_count_again_is_compared_by_sums(
    store: Store, server: "Redis", key: Key
) -> None:
    made = await store.create_batch(BatchOrder("", U1, "", b"", expanding=False, sealed=False))
    await store.pause("ann", "")
    for first in range(0, 6_000, 1_000):
        some = range(first, first + 1_000)
        await store.put([order(f"many{n}", batch=made.id, exempt=True) for n in some])
    seen: dict[str, int] = {}
    assert await store.check(progress=seen.__setitem__) == []
    assert seen["batch_rows"] >= 6_000
    await change_head(server, key, made.id, COUNTS_AT, 7)
    [violation] = await store.check(repair=True)
    assert (violation.code, violation.repaired) == ("batch-counts", False)


async def test_b24_check_runs_beside_live_work_and_finds_nothing(store: Store, key: Key) -> None:
    async def work() -> None:
        for n in range(40):
            who = Submitter("user", f"live{n % 3}")
            made = await store.create_batch(BatchOrder("", who, "", b"", expanding=False, sealed=False))
            await store.put([order(f"live{n}-{i}", who, batch=made.id, exempt=True) for i in range(10)])
            await store.seal_batch(made.id)
            await store.hold("submitter", str(who), "ann", "")
            shift = await store.take("w")
            for _ in STAGES:
                leases = [start.lease for start in shift.starts]
                shift = await store.finish("w", [Finish(lease, space=10) for lease in leases])
            await store.unhold("submitter", str(who))

    async def check() -> list[Any]:
        return [fault for _ in range(8) for fault in await store.check()]

    _, found = await asyncio.gather(work(), check())
    assert found == []
