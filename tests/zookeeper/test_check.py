"""B24: the check of a healthy tree finds nothing, and of one fault of each kind exactly that."""

from collections.abc import Awaitable, Callable

import pytest

from maitred.store.zookeeper.check import check
from maitred.store.zookeeper.ledger import Ledger
from maitred.store.zookeeper.session import Create, Delete, Op, Put
from tests.conftest import Clock
from tests.zookeeper.conftest import Opener
from tests.zookeeper.party import RUN, batch_of, batch_order, everything, failed, into

Break = Callable[[Ledger, str, str], Awaitable[list[Op]]]
BREAKS: dict[str, Break] = {}


def breaks(code: str) -> Callable[[Break], Break]:
    def note(how: Break) -> Break:
        BREAKS[f"{code} {how.__name__}"] = how
        return how

    return note


@breaks("tree-index-missing")
async def no_entry(ledger: Ledger, bid: str, jid: str) -> list[Op]:
    return [Delete(ledger.tree.entry("pending", 5, jid))]


@breaks("tree-index-double")
async def two_entries(ledger: Ledger, bid: str, jid: str) -> list[Op]:
    return [Create(ledger.tree.entry("processing", 5, jid))]


@breaks("tree-index-misplaced")
async def entry_elsewhere(ledger: Ledger, bid: str, jid: str) -> list[Op]:
    return [Delete(ledger.tree.entry("pending", 5, jid)), Create(ledger.tree.entry("held", 5, jid))]


@breaks("tree-index-misplaced")
async def entry_of_another_priority(ledger: Ledger, bid: str, jid: str) -> list[Op]:
    return [Put(ledger.tree.job(jid, "priority"), b"8")]


@breaks("tree-index-stray")
async def entry_of_nobody(ledger: Ledger, bid: str, jid: str) -> list[Op]:
    return [Create(ledger.tree.entry("failed", 5, "jid0000099999"))]


@breaks("tree-bucket-missing")
async def no_bucket(ledger: Ledger, bid: str, jid: str) -> list[Op]:
    return [Delete(ledger.tree.bucket(bid, "pending", jid))]


@breaks("tree-bucket-double")
async def two_buckets(ledger: Ledger, bid: str, jid: str) -> list[Op]:
    return [Create(ledger.tree.bucket(bid, "failed", jid))]


@breaks("tree-bucket-misplaced")
async def another_bucket(ledger: Ledger, bid: str, jid: str) -> list[Op]:
    return [Delete(ledger.tree.bucket(bid, "pending", jid)), Create(ledger.tree.bucket(bid, "failed", jid))]


@breaks("tree-bucket-stray")
async def bucket_of_nobody(ledger: Ledger, bid: str, jid: str) -> list[Op]:
    return [Create(ledger.tree.bucket(bid, "failed", "jid0000099999"))]


@breaks("tree-bucket-stray")
async def bucket_of_another_batch(ledger: Ledger, bid: str, jid: str) -> list[Op]:
    other, _ = await batch_of(ledger, "another")
    return [Create(ledger.tree.bucket(other, "failed", jid))]


@breaks("tree-job-missing")
async def no_job(ledger: Ledger, bid: str, jid: str) -> list[Op]:
    nodes = await everything(ledger, ledger.tree.job(jid))
    return [Delete(path) for path in reversed(list(nodes))]


@breaks("tree-batch-missing")
async def no_such_batch(ledger: Ledger, bid: str, jid: str) -> list[Op]:
    ops: list[Op] = [Put(ledger.tree.job(jid, "bid"), b"bid0000099999")]
    return [*ops, Delete(ledger.tree.bucket(bid, "pending", jid))]


@breaks("tree-batch-early")
async def ended_too_early(ledger: Ledger, bid: str, jid: str) -> list[Op]:
    return [Put(ledger.tree.batch(bid, "status"), b'{"status":"Completed"}')]


@breaks("tree-count")
async def a_key_too_many(ledger: Ledger, bid: str, jid: str) -> list[Op]:
    return [Create(ledger.tree.key(bid, "more"), b"jid0000099999")]


@breaks("tree-uuid-missing")
async def not_found(ledger: Ledger, bid: str, jid: str) -> list[Op]:
    return [Delete(ledger.tree.uuid("ours"))]


@breaks("tree-uuid-stray")
async def finds_nothing(ledger: Ledger, bid: str, jid: str) -> list[Op]:
    return [Create(ledger.tree.uuid("theirs"), b"bid0000099999")]


@breaks("tree-lock")
async def lock_without_a_session(ledger: Ledger, bid: str, jid: str) -> list[Op]:
    return [Create(ledger.tree.job(jid, "lock"))]


@breaks("tree-lock")
async def batch_lock_without_a_session(ledger: Ledger, bid: str, jid: str) -> list[Op]:
    return [Create(ledger.tree.batch(bid, "lock"))]


@breaks("tree-status")
async def spoilt_status(ledger: Ledger, bid: str, jid: str) -> list[Op]:
    return [Put(ledger.tree.job(jid, "status"), b"{nonsense")]


@breaks("tree-status")
async def unknown_state(ledger: Ledger, bid: str, jid: str) -> list[Op]:
    return [Put(ledger.tree.batch(bid, "status"), b'{"status":"Dancing"}')]


@pytest.mark.parametrize("fault", BREAKS)
async def test_b24_one_fault_is_found_and_nothing_else(connect: Opener, fault: str) -> None:
    ledger = await connect()
    bid, [jid, second, third, fourth] = await batch_of(ledger, "a", "b", "c", "d", external_id="ours")
    await into(ledger, second, "completed")
    await failed(ledger, third)
    await ledger.jobs.delete(fourth)
    assert await check(ledger) == []
    await ledger.session.multi(await BREAKS[fault](ledger, bid, jid))
    assert [violation.code for violation in await check(ledger)] == [fault.split(maxsplit=1)[0]]


async def test_b24_items_that_stayed_empty_for_an_hour_are_orphans(ledger: Ledger, clock: Clock) -> None:
    bid, _ = await batch_of(ledger, "a")
    await ledger.intake._ids(2)
    await ledger.batches._item()
    node = await ledger.session.stat(ledger.tree.batch(bid))
    assert node
    clock.now = node.created * 1_000 + 3_590_000_000
    assert await check(ledger) == []
    clock.now += 60_000_000
    assert [violation.code for violation in await check(ledger)] == ["tree-orphan"] * 3
    assert await ledger.removal.sweep() == 3
    assert await check(ledger) == []
    assert await ledger.batches.ids() == [bid]


async def test_what_a_crash_left_of_a_deletion_is_swept(ledger: Ledger, clock: Clock) -> None:
    before = await everything(ledger)
    bid, [jid] = await batch_of(ledger, "a")
    await failed(ledger, jid)
    await ledger.session.multi([Delete(ledger.tree.batch(bid, "status")), Put(ledger.tree.batch(bid), b"")])
    assert await check(ledger) == []
    node = await ledger.session.stat(ledger.tree.batch(bid))
    assert node
    clock.now = node.modified * 1_000 + 3_700_000_000
    assert [violation.code for violation in await check(ledger)] == ["tree-orphan"]
    await ledger.removal.sweep()
    assert await everything(ledger) == before


async def test_locks_of_the_living_are_no_fault(ledger: Ledger) -> None:
    bid, [jid] = await batch_of(ledger, "a")
    assert await ledger.batches.lock(bid, "me", RUN)
    assert await ledger.lock_job(jid, "me", RUN)
    await ledger.batches.create(batch_order())
    assert await check(ledger) == []
