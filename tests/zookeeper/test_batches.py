"""Batches in the tree, by the numbers of the scenarios: made once, worked on under a lock, reported once."""

import asyncio
import json

import pytest

from maitred.core.batch import Batch, BatchOrder, BatchState
from maitred.core.job import Submitter
from maitred.errors import (
    BatchReporting,
    BatchSealed,
    BatchUnfinished,
    IllegalMove,
    LockLost,
    NotHeld,
    OtherSubmitter,
    TooLarge,
    UnknownBatch,
)
from maitred.store.zookeeper.intake import Intake
from maitred.store.zookeeper.ledger import Ledger
from maitred.store.zookeeper.locks import Lock
from maitred.store.zookeeper.payloads import NODE_LIMIT, Reason
from maitred.store.zookeeper.session import Create, Op, OutcomeUnknown, Refused, Session
from tests.zookeeper.conftest import Opener
from tests.zookeeper.party import (
    RUN,
    SUBMISSION,
    U1,
    batch_of,
    batch_order,
    buckets,
    everything,
    failed,
    into,
    newcomer,
)

TOKENS = [bytes([number]) * 16 for number in range(8)]


def pending(batch: Batch) -> bool:
    return batch.state is BatchState.PENDING


def ready(batch: Batch) -> bool:
    return batch.sealed and not batch.unfinished and batch.state is BatchState.PROCESSING


async def reported(ledger: Ledger, bid: str, **rows: list[str]) -> BatchState:
    """Report a batch whose jobs have all ended."""
    lock = await ledger.batches.lock(bid, "clerk", TOKENS[0])
    assert lock
    assert await ledger.batches.begin_report(bid, lock)
    entry = await ledger.batches.read(bid)
    report = {"sequence": entry.batch.sequence + 1, "kind": "report", "at": "now", "failed": [], **rows}
    state = await ledger.batches.store_report(bid, lock, json.dumps(report).encode(), send=True)
    await ledger.locks.give_up(lock)
    return state


async def test_b1_a_batch_is_pending_kept_verbatim_and_found_by_its_external_id(ledger: Ledger) -> None:
    put = await ledger.batches.create(batch_order("a/b:c_d ..é"))
    assert put.created
    entry = await ledger.batches.read(put.id)
    assert (entry.batch.state, entry.batch.submission) == (BatchState.PENDING, SUBMISSION)
    assert (entry.batch.external_id, entry.batch.submitter, entry.batch.profile) == (
        "a/b:c_d ..é",
        U1,
        "images",
    )
    assert await ledger.batches.find("a/b:c_d ..é") == put.id
    assert await ledger.batches.find("a/b") is None


async def test_the_nodes_of_a_batch_are_those_of_the_layout(ledger: Ledger) -> None:
    bid = (await ledger.batches.create(batch_order("uuid-1"))).id
    nodes = await everything(ledger, ledger.tree.batch(bid))
    names = {path.removeprefix(ledger.tree.batch(bid)) for path in nodes}
    shared = {"", "/submission", "/status", "/expansion", "/keys"}
    submission = json.loads(nodes[ledger.tree.batch(bid, "submission")])
    status = json.loads(nodes[ledger.tree.batch(bid, "status")])
    assert status["status"] == "Pending"
    assert (submission["erc_who"], submission["type"], submission["payload_filename"]) == (
        "Ada",
        "object-manifest",
        "manifest.checkm",
    )
    if ledger.tree.layout.name == "seed":
        states = {f"/states/{name}" for name in ("pending", "held", "processing", "failed", "completed")}
        assert names == shared | states | {"/states"}
        assert status.keys() == {"status", "last_modified"}
    else:
        assert names == shared
        assert submission["batchID"] == "uuid-1"
        assert status.keys() == {"status", "last_modified", "message"}
        await ledger.intake.add(
            (await ledger.batches.create(batch_order("uuid-2", sealed=False))).id, [newcomer("a")]
        )


@pytest.mark.parametrize("bid", ["bid0000099999", "", "nonsense", "../jobs", "bid0000000001/lock"])
async def test_b2_an_unknown_batch_is_an_error_and_nothing_is_made(ledger: Ledger, bid: str) -> None:
    before = await everything(ledger)
    with pytest.raises(UnknownBatch):
        await ledger.batches.read(bid)
    with pytest.raises(UnknownBatch):
        await ledger.removal.remove(bid)
    assert await everything(ledger) == before


async def test_b3_the_oldest_pending_batch_is_first_then_the_second_then_none(ledger: Ledger) -> None:
    bids = [(await ledger.batches.create(batch_order())).id for _ in range(2)]
    taken = [await ledger.batches.lock_oldest("s", TOKENS[n], pending) for n in range(3)]
    assert [each[1].id if each else None for each in taken] == [*bids, None]


async def test_b4_when_its_session_ends_a_lock_is_gone_and_the_state_unchanged(
    ledger: Ledger, connect: Opener
) -> None:
    bid = (await ledger.batches.create(batch_order())).id
    other = await connect()
    assert await other.batches.lock_oldest("other", RUN, pending)
    holder = await ledger.locks.holder(ledger.tree.batch(bid))
    assert holder
    assert (holder.owner, bool(holder.host)) == ("other", True)
    await other.close()
    await ledger.session.sync(ledger.tree.batches)
    assert await ledger.locks.holder(ledger.tree.batch(bid)) is None
    assert (await ledger.batches.read(bid)).batch.state is BatchState.PENDING


async def test_b5_what_a_live_one_has_locked_another_skips(ledger: Ledger, connect: Opener) -> None:
    first, second = [(await ledger.batches.create(batch_order())).id for _ in range(2)]
    other = await connect()
    locked = await other.batches.lock_oldest("other", RUN, pending)
    assert locked
    assert locked[1].id == first
    mine = await ledger.batches.lock_oldest("me", TOKENS[1], pending)
    assert mine
    assert mine[1].id == second


async def test_only_the_owner_gives_a_lock_up(ledger: Ledger, connect: Opener) -> None:
    bid = (await ledger.batches.create(batch_order())).id
    other = await connect()
    lock = await other.batches.lock(bid, "other", RUN)
    assert lock
    assert await ledger.batches.lock(bid, "me", TOKENS[1]) is None
    stolen = Lock(lock.path, lock.claim, ledger.session.id)
    assert not await ledger.locks.give_up(stolen)
    assert await other.locks.holds(lock)
    assert await other.locks.give_up(lock)
    assert not await other.locks.give_up(lock)


async def test_b9_a_batch_with_unfinished_jobs_stays_and_one_that_ended_leaves_no_trace(
    ledger: Ledger,
) -> None:
    before = await everything(ledger)
    bid, [first, second] = await batch_of(ledger, "a", "b", external_id="x")
    await failed(ledger, first)
    with pytest.raises(BatchUnfinished):
        await ledger.removal.remove(bid)
    await into(ledger, second, "completed")
    assert await reported(ledger, bid, completed=[second], failed=[first]) is BatchState.FAILED
    await ledger.removal.remove(bid)
    assert await everything(ledger) == before
    with pytest.raises(UnknownBatch):
        await ledger.batches.read(bid)


async def test_b9_a_deletion_takes_what_else_is_under_a_job_too(ledger: Ledger) -> None:
    before = await everything(ledger)
    bid, jids = await batch_of(ledger, *(f"k{n}" for n in range(5)))
    for jid in jids:
        await ledger.jobs.fail(jid, None, "cancelled", "")
    await ledger.jobs.delete(jids[3])
    await reported(ledger, bid)
    assert await ledger.lock_job(jids[1], "late", RUN)
    await ledger.session.multi([Create(ledger.tree.job(jids[2], "theirs"), b"of another program")])
    await ledger.removal.remove(bid)
    assert await everything(ledger) == before


async def test_b11_a_batch_is_reported_when_its_last_job_has_ended(ledger: Ledger) -> None:
    bid, jids = await batch_of(ledger, "a", "b", "c")
    lock = await ledger.batches.lock(bid, "clerk", RUN)
    assert lock
    for jid in jids:
        assert await ledger.batches.begin_report(bid, lock) is None
        await into(ledger, jid, "completed")
    entry = await ledger.batches.begin_report(bid, lock)
    assert entry
    assert entry.batch.state is BatchState.REPORTING
    state = await ledger.batches.store_report(bid, lock, b'{"sequence":1,"failed":[]}', send=True)
    assert state is BatchState.COMPLETED
    batch = (await ledger.batches.read(bid)).batch
    assert (batch.sequence, batch.unsent, json.loads(batch.report)) == (
        1,
        True,
        {"sequence": 1, "failed": []},
    )
    with pytest.raises(IllegalMove):
        await ledger.batches.store_report(bid, lock, b"{}", send=True)


async def test_b12_one_failed_job_fails_the_batch_and_its_message_is_kept(ledger: Ledger) -> None:
    bid, [first, second] = await batch_of(ledger, "a", "b")
    await failed(ledger, first, message="disk full")
    await into(ledger, second, "completed")
    assert await reported(ledger, bid) is BatchState.FAILED
    rows = [row async for _, row in ledger.batches.rows(bid)]
    assert [(row.state, row.message) for row in rows] == [("failed", "disk full"), ("completed", "")]


async def test_b13_after_a_retry_an_update_report_completes_the_batch(ledger: Ledger) -> None:
    bid, [jid] = await batch_of(ledger, "a")
    await failed(ledger, jid, "notify")
    assert await reported(ledger, bid) is BatchState.FAILED
    job = await ledger.jobs.retry(jid)
    assert (job.state, job.retries) == ("notify", 1)
    assert (await ledger.batches.read(bid)).batch.state is BatchState.FAILED
    await ledger.batches.begin_update(bid)
    lock = await ledger.batches.lock(bid, "clerk", RUN)
    assert lock
    assert await ledger.batches.begin_report(bid, lock) is None
    await into(ledger, jid, "completed")
    assert await ledger.batches.begin_report(bid, lock)
    with pytest.raises(BatchReporting):
        await ledger.jobs.delete(jid)
    state = await ledger.batches.store_report(bid, lock, b'{"sequence":2,"failed":[]}', send=True)
    assert state is BatchState.COMPLETED


async def test_b14_a_job_that_fails_again_leaves_the_batch_failed_and_the_report_unsent(
    ledger: Ledger,
) -> None:
    bid, [jid] = await batch_of(ledger, "a")
    await failed(ledger, jid)
    await reported(ledger, bid)
    await ledger.jobs.retry(jid)
    await failed(ledger, jid, "downloading")
    await ledger.batches.begin_update(bid)
    lock = await ledger.batches.lock(bid, "clerk", RUN)
    assert lock
    assert await ledger.batches.begin_report(bid, lock)
    state = await ledger.batches.store_report(bid, lock, b'{"sequence":2,"failed":[]}', send=False)
    batch = (await ledger.batches.read(bid)).batch
    assert (state, batch.sequence, batch.unsent) == (BatchState.FAILED, 2, False)


async def test_rows_note_the_state_in_which_they_were_reported(ledger: Ledger) -> None:
    bid, [jid] = await batch_of(ledger, "a")
    job = await failed(ledger, jid)
    lock = await ledger.batches.lock(bid, "clerk", RUN)
    assert lock
    await ledger.batches.mark_rows(bid, lock, [(job, "failed")])
    assert [row.reported async for _, row in ledger.batches.rows(bid)] == ["failed"]
    await ledger.locks.give_up(lock)
    with pytest.raises(LockLost):
        await ledger.batches.mark_rows(bid, lock, [(job, "failed")])


async def test_a_report_that_is_too_large_for_a_node_is_kept_in_parts(ledger: Ledger) -> None:
    bid, [jid] = await batch_of(ledger, "a")
    await failed(ledger, jid)
    for sequence in (1, 2):
        if sequence == 2:
            await ledger.batches.begin_update(bid)
        lock = await ledger.batches.lock(bid, "clerk", RUN)
        assert lock
        assert await ledger.batches.begin_report(bid, lock)
        rows = [{"id": f"job-{n}", "message": "m" * 200} for n in range(2 * NODE_LIMIT // 200)]
        report = json.dumps({"sequence": sequence, "failed": rows}).encode()
        await ledger.batches.store_report(bid, lock, report, send=False)
        await ledger.locks.give_up(lock)
        assert (await ledger.batches.read(bid)).batch.report == report
    names = await ledger.session.children(ledger.tree.batch(bid, "status-report"))
    assert names
    assert all(name.startswith("000002-") for name in names)
    await ledger.removal.remove(bid)


async def test_b22_the_same_external_id_twice_is_one_batch(ledger: Ledger, connect: Opener) -> None:
    others = [ledger, *[await connect() for _ in range(3)]]
    puts = await asyncio.gather(
        *(each.batches.create(batch_order("same")) for each in others for _ in range(3))
    )
    assert len({put.id for put in puts}) == 1
    assert sum(put.created for put in puts) == 1
    assert await ledger.batches.ids() == [puts[0].id]
    with pytest.raises(OtherSubmitter):
        await ledger.batches.create(batch_order("same", submitter=Submitter("team", "1")))


async def test_a_key_that_the_batch_has_is_passed_over(ledger: Ledger) -> None:
    bid, jids = await batch_of(ledger, *(f"k{n}" for n in range(120)), seal=False)
    again = await ledger.intake.add(bid, [newcomer(f"k{n}") for n in range(130)] + [newcomer("k129")])
    assert [each.jid for each in again[:120]] == jids
    assert [each.created for each in again] == [False] * 120 + [True] * 10 + [False]
    assert again[129].jid == again[130].jid
    assert (await ledger.batches.read(bid)).expansion.rows == 130
    assert (await ledger.reader.unfinished(bid)) == 130


async def test_two_who_add_the_same_jobs_at_once_double_none(ledger: Ledger, connect: Opener) -> None:
    bid = (await ledger.batches.create(batch_order(sealed=False))).id
    other = await connect()
    jobs = [newcomer(f"k{n}") for n in range(150)]
    first, second = await asyncio.gather(ledger.intake.add(bid, jobs), other.intake.add(bid, jobs))
    assert [each.jid for each in first] == [each.jid for each in second]
    assert sum(each.created for each in first + second) == 150


async def test_a_chunk_is_whole_or_not_there(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    bid = (await ledger.batches.create(batch_order(sealed=False))).id

    async def crash(self: Intake, count: int) -> list[str]:
        await ids(self, count)
        raise RuntimeError

    ids = Intake._ids
    monkeypatch.setattr(Intake, "_ids", crash)
    with pytest.raises(RuntimeError):
        await ledger.intake.add(bid, [newcomer("a"), newcomer("b")])
    monkeypatch.undo()
    assert await buckets(ledger, bid) == {}
    added = await ledger.intake.add(bid, [newcomer("a"), newcomer("b")])
    assert await buckets(ledger, bid) == {ledger.tree.layout.buckets["pending"]: [each.jid for each in added]}


async def test_a_sealed_batch_takes_no_more_and_seals_once(ledger: Ledger) -> None:
    bid, _ = await batch_of(ledger, "a")
    with pytest.raises(BatchSealed):
        await ledger.intake.add(bid, [newcomer("b")])
    with pytest.raises(BatchSealed):
        await ledger.batches.seal(bid)
    assert not (await ledger.intake.add(bid, [newcomer("a")]))[0].created


async def test_whoever_expands_a_batch_adds_to_it_by_its_lock(ledger: Ledger, connect: Opener) -> None:
    order = BatchOrder("", U1, "images", SUBMISSION, expanding=True, sealed=True)
    bid = (await ledger.batches.create(order)).id
    server = await connect()
    lock = await server.batches.lock(bid, "server", RUN)
    assert lock
    await server.intake.add(bid, [newcomer("a")], lock)
    assert (await ledger.batches.read(bid)).batch.state is BatchState.PROCESSING
    await server.locks.give_up(lock)
    with pytest.raises(LockLost):
        await server.intake.add(bid, [newcomer("b")], lock)
    lock = await server.batches.lock(bid, "server", RUN)
    await server.batches.seal(bid, lock)
    batch = (await ledger.batches.read(bid)).batch
    assert (batch.sealed, batch.expanding) == (True, False)
    with pytest.raises(BatchSealed):
        await ledger.intake.add(bid, [newcomer("b")])


async def test_a_batch_that_is_expanded_stays_open_unless_it_is_to_be_sealed(ledger: Ledger) -> None:
    order = BatchOrder("", U1, "images", SUBMISSION, expanding=True, sealed=False)
    for sealed_meanwhile in (False, True):
        bid = (await ledger.batches.create(order)).id
        lock = await ledger.batches.lock(bid, "server", RUN)
        if sealed_meanwhile:
            await ledger.batches.seal(bid)
            assert not (await ledger.batches.read(bid)).batch.sealed
        batch = (await ledger.batches.seal(bid, lock)).batch
        assert (batch.expanding, batch.sealed) == (False, sealed_meanwhile)


async def test_a_batch_that_cannot_be_expanded_is_reported_as_failed(ledger: Ledger) -> None:
    order = BatchOrder("", U1, "images", SUBMISSION, expanding=True, sealed=True)
    bid = (await ledger.batches.create(order)).id
    lock = await ledger.batches.lock(bid, "server", RUN)
    assert lock
    assert await ledger.batches.begin_report(bid, lock) is None
    await ledger.batches.seal(bid, lock, fault="line 3: no url")
    assert await ledger.batches.begin_report(bid, lock)
    assert await ledger.batches.store_report(bid, lock, b"{}", send=True) is BatchState.FAILED
    assert (await ledger.batches.read(bid)).batch.fault == "line 3: no url"


async def test_a_batch_is_held_and_goes_on_where_it_was(ledger: Ledger) -> None:
    bid, [jid] = await batch_of(ledger, "a")
    await ledger.batches.hold(bid, Reason("batch", bid, "op", "wait"))
    entry = await ledger.batches.read(bid)
    assert entry.batch.state is BatchState.HELD
    assert entry.expansion.hold == Reason("batch", bid, "op", "wait")
    assert (await ledger.batches.unhold(bid)).batch.state is BatchState.PROCESSING
    with pytest.raises(NotHeld):
        await ledger.batches.unhold(bid)
    await into(ledger, jid, "completed")
    await reported(ledger, bid)
    with pytest.raises(IllegalMove):
        await ledger.batches.hold(bid, Reason("batch", bid))


async def test_a_retry_and_a_report_that_meet_do_not_both_take_place(ledger: Ledger, connect: Opener) -> None:
    other = await connect()
    for number in range(10):
        bid, [jid] = await batch_of(ledger, f"k{number}")
        await failed(ledger, jid, "estimating")
        lock = await ledger.batches.lock(bid, "clerk", RUN)
        assert lock
        begun, retried = await asyncio.gather(
            ledger.batches.begin_report(bid, lock), other.jobs.retry(jid), return_exceptions=True
        )
        assert (begun is None) != isinstance(retried, BatchReporting), (begun, retried)


async def test_a_submission_that_is_too_large_is_refused(ledger: Ledger) -> None:
    with pytest.raises(TooLarge):
        await ledger.batches.create(batch_order()._replace(submission=b"x" * 1_000_000))


@pytest.mark.parametrize("landed", [True, False])
async def test_a_write_whose_answer_was_lost_is_done_once(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, landed: bool
) -> None:
    bid, [jid] = await batch_of(ledger, "a", seal=False)
    real = Session.multi
    lost = 0

    async def lose_the_answer(self: Session, ops: list[Op]) -> list[object]:
        nonlocal lost
        lost += 1
        if lost % 2:
            if landed:
                await real(self, ops)
            raise OutcomeUnknown
        return await real(self, ops)

    monkeypatch.setattr(Session, "multi", lose_the_answer)
    before = (await ledger.jobs.read(jid)).version
    job = await ledger.jobs.prioritise(jid, 7)
    assert job.version == before + 1
    lost = 0
    put = await ledger.batches.create(batch_order("once"))
    assert put.created
    lost = 1
    added = await ledger.intake.add(bid, [newcomer("b")])
    lost = 0
    await ledger.batches.seal(bid)
    lock = await ledger.batches.lock(bid, "me", RUN)
    assert lock
    lost = 0
    await ledger.locks.give_up(lock)
    monkeypatch.undo()
    assert await ledger.jobs.read(jid) == job
    assert (await ledger.jobs.read(added[0].jid)).state == "pending"
    assert await ledger.batches.find("once") == put.id


async def test_a_batch_of_another_program_can_be_read_and_added_to(ledger: Ledger) -> None:
    tree = ledger.tree
    await ledger.session.multi([Create(tree.batch("bid0000000777"))])
    await ledger.session.multi(
        [
            Create(
                tree.batch("bid0000000777", "submission"), b'{"batchID":"u7","submitter":"ada","other":1}'
            ),
            Create(tree.batch("bid0000000777", "status"), b'{"status":"Pending","last_modified":"?"}'),
            Create(tree.uuid("u7"), b"bid0000000777"),
        ]
    )
    entry = await ledger.batches.read("bid0000000777")
    assert (entry.batch.external_id, entry.batch.submitter) == ("u7", Submitter("user", "ada"))
    await ledger.intake.add("bid0000000777", [newcomer("a")])
    assert (await ledger.batches.read("bid0000000777")).batch.state is BatchState.PROCESSING
    with pytest.raises(Refused):
        await ledger.session.multi([Create(tree.uuid("u7"))])
