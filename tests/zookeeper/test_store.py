"""B1 to B19 on a queue whose ledger is a tree: the line in memory and on Valkey, in both layouts."""

import json
from dataclasses import replace
from typing import Any

import pytest

from maitred.core.job import Phase, Submitter
from maitred.core.stages import INGEST
from maitred.errors import (
    BatchReporting,
    BatchUnfinished,
    IllegalMove,
    LockLost,
    NotFailed,
    NotHeld,
    NotWaiting,
    OtherSubmitter,
    UnknownBatch,
    UnknownJob,
)
from maitred.service.clerk import Clerk
from tests.service.post import postman
from tests.zookeeper.house import U1, House, finish, ingest
from tests.zookeeper.party import buckets, entries, everything


async def reported(house: House, bid: str) -> dict[str, Any]:
    """Let a clerk do all that is to be done; give the last report."""
    await Clerk(house.store, "clerk", postman()).work_off()
    batch = await house.store.batch(bid)
    assert batch
    report: dict[str, Any] = json.loads(batch.report)
    return report


async def test_b1_a_batch_is_pending_verbatim_and_found_by_its_external_id(house: House) -> None:
    bid = await house.batch(external_id="a/:_é")
    batch = await house.store.batch(bid)
    assert batch
    assert (batch.state, batch.external_id, batch.submitter) == ("pending", "a/:_é", U1)
    assert json.loads(batch.submission) == {"submitter": {"type": "user", "id": "1"}}
    assert [each.id for each in (await house.store.batches(external_id="a/:_é")).batches] == [bid]
    assert [each.id for each in (await house.store.batches()).batches] == [bid]


async def test_b2_an_unknown_batch_is_a_typed_error_and_nothing_is_made(house: House) -> None:
    before = await everything(house.ledger)
    for bid in ("bid0000000099", "no such", "../jobs"):
        assert await house.store.batch(bid) is None
        assert await house.store.put([ingest("a", batch=bid)]) == ["no-batch"]
        with pytest.raises(UnknownBatch):
            await house.store.seal_batch(bid)
        with pytest.raises(UnknownBatch):
            await house.store.batch_rows(bid, 0, 10)
    assert await everything(house.ledger) == before


async def test_b3_and_b5_batches_are_locked_oldest_first_and_by_one(house: House) -> None:
    first, second = await house.batch(sealed=True), await house.batch(sealed=True)
    got = [await house.store.lock_batch("clerk", bytes([n]) * 16) for n in range(3)]
    assert [each and each.batch.id for each in got] == [first, second, None]
    await house.store.unlock_batch(first, b"\0" * 16)
    again = await house.store.lock_batch("other", b"z" * 16)
    assert again
    assert (again.batch.id, again.work) == (first, "report")


async def test_a_lock_that_nobody_keeps_is_over_after_a_lease(house: House) -> None:
    bid = await house.batch(sealed=True)
    assert await house.store.lock_batch("clerk", b"t" * 16)
    house.clock.at(20)
    await house.store.keep_batch(bid, b"t" * 16)
    house.clock.at(40)
    assert await house.store.lock_batch("other", b"u" * 16) is None
    house.clock.at(51)
    again = await house.store.lock_batch("other", b"u" * 16)
    assert again
    assert again.batch.id == bid
    with pytest.raises(LockLost):
        await house.store.keep_batch(bid, b"t" * 16)


async def test_b6_a_new_job_is_pending_in_the_tree_and_has_a_place_in_line(house: House) -> None:
    bid = await house.batch()
    [put] = await house.put("a", batch=bid)
    assert (put.outcome, put.version) == ("created", 1)
    entry = await house.entry("a")
    assert (entry.state, entry.last, entry.retries, entry.priority) == ("pending", None, 0, 5)
    assert await entries(house.ledger, entry.jid) == [f"pending/05-{entry.jid}"]
    assert list((await buckets(house.ledger, bid)).values()) == [[entry.jid]]
    assert (await house.job("a")).phase is Phase.WAITING


async def test_b7_a_stage_ends_in_the_tree_and_in_the_line(house: House) -> None:
    await house.put("a")
    [start] = (await house.store.join("w", 1, ["stage:estimating"])).starts
    assert await house.states("a") == ("estimating", "estimating")
    said: dict[str, Any] = {"priority": 3, "space": 7, "identifiers": b'{"primary_id":"ark:/1"}'}
    await house.store.finish("w", [finish(start, **said)])
    entry, job = await house.entry("a"), await house.job("a")
    assert (entry.state, entry.last, entry.priority, entry.space) == ("provisioning", "estimating", 3, 7)
    assert (job.state(INGEST), job.priority, job.space) == ("provisioning", 3, 7)
    assert entry.identifiers == job.identifiers == b'{"primary_id":"ark:/1"}'
    assert await entries(house.ledger, entry.jid) == [f"provisioning/03-{entry.jid}"]
    assert job.status == entry.mark


async def test_b8_and_b19_priorities_decide_and_may_change_while_a_job_waits(house: House) -> None:
    await house.put("a", "b", "c", priority=5)
    await house.store.prioritise("b", 2)
    await house.store.prioritise("a", 15)
    entry = await house.entry("a")
    assert await entries(house.ledger, entry.jid) == [f"pending/15-{entry.jid}"]
    assert [name for name in await house.work(slots=1) if "estim" in name] == [
        "b@estimating",
        "c@estimating",
        "a@estimating",
    ]
    with pytest.raises(NotWaiting):
        await house.store.prioritise("a", 1)
    with pytest.raises(UnknownJob):
        await house.store.prioritise("no such", 1)


async def test_b9_a_batch_is_deleted_without_trace_when_its_jobs_have_ended(house: House) -> None:
    empty = await everything(house.ledger)
    bid = await house.batch(external_id="x")
    await house.put("a", "b", batch=bid)
    await house.store.seal_batch(bid)
    with pytest.raises(BatchUnfinished):
        await house.store.remove_batch(bid)
    await house.work()
    with pytest.raises(BatchReporting):
        await house.store.remove_batch(bid)
    await reported(house, bid)
    await house.store.remove_batch(bid)
    assert await everything(house.ledger) == empty
    assert await house.store.read(["a", "b"]) == [None, None]


async def test_b10_through_all_stages(house: House) -> None:
    bid = await house.batch()
    await house.put("a", batch=bid)
    await house.store.seal_batch(bid)
    assert await house.work() == [f"a@{stage}" for stage in INGEST]
    entry = await house.entry("a")
    assert (entry.state, entry.last) == ("completed", "notify")
    job = await house.job("a")
    assert (job.state(INGEST), job.result) == ("completed", b'"stage:notify"')
    assert [run.code for run in job.timeline] == [""] * 6
    batch = await house.store.batch(bid)
    assert batch
    assert (batch.state, batch.counts["completed"]) == ("reporting", 1)
    assert await house.ledger.session.stat(house.tree.bridge.lock(entry.jid)) is None
    assert not house.tree.runs.taken
    assert not house.tree.runs.locked


async def test_b11_one_report_when_the_last_job_is_done(house: House) -> None:
    bid = await house.batch()
    await house.put("a", "b", "c", batch=bid)
    await house.store.seal_batch(bid)
    starts = (await house.store.join("w", 3, ["stage:estimating"])).starts
    await house.store.finish("w", [finish(start, "error", "no") for start in starts[:2]])
    assert await Clerk(house.store, "clerk", postman()).work_off() == 0
    await house.store.finish("w", [finish(starts[2], "error", "no")])
    report = await reported(house, bid)
    assert [row["key"] for row in report["failed"]] == ["a", "b", "c"]
    assert await Clerk(house.store, "clerk", postman()).work_off() == 0
    batch = await house.store.batch(bid)
    assert batch
    assert (batch.state, batch.sequence) == ("failed", 1)


async def test_b12_b13_and_b14_a_failed_job_is_retried_where_it_failed(house: House) -> None:
    bid = await house.batch()
    await house.put("a", "b", batch=bid)
    await house.store.seal_batch(bid)
    await house.work(fail=["a@notify"])
    with pytest.raises(BatchReporting):
        await house.store.retry("a")
    report = await reported(house, bid)
    assert [(row["key"], row["message"]) for row in report["failed"]] == [("a", "no route")]
    assert (await house.entry("a")).last == "recording"
    await house.store.retry("a")
    assert await house.states("a") == ("notify", "notify")
    assert await house.work(fail=["a@notify"]) == ["a@notify"]
    await house.store.update_batch(bid)
    again = await reported(house, bid)
    assert (again["sequence"], again["kind"], again["failed"]) == (2, "update-report", [])
    await house.store.retry("a")
    assert await house.work() == ["a@notify"]
    await house.store.update_batch(bid)
    last = await reported(house, bid)
    assert [row["key"] for row in last["completed"]] == ["a"]
    batch, entry, job = await house.store.batch(bid), await house.entry("a"), await house.job("a")
    assert batch
    assert (batch.state, entry.state, entry.retries, job.retries) == ("completed", "completed", 2, 2)
    with pytest.raises(NotFailed):
        await house.store.retry("a")


@pytest.mark.parametrize("stage", INGEST)
async def test_b15_what_fails_in_a_stage_resumes_there(house: House, stage: str) -> None:
    await house.put("a")
    done = await house.work(fail=[f"a@{stage}"])
    assert done[-1] == f"a@{stage}"
    assert await house.states("a") == ("failed", "failed")
    await house.store.retry("a")
    assert (await house.work())[0] == f"a@{stage}"
    assert await house.states("a") == ("completed", "completed")


async def test_b16_an_illegal_move_is_refused_and_changes_nothing(house: House) -> None:
    await house.put("a")
    before = await everything(house.ledger)
    with pytest.raises(IllegalMove):
        await house.ledger.jobs.change(await house.entry("a"), "recording")
    assert await everything(house.ledger) == before


async def test_b17_a_paused_queue_accepts_and_a_job_stops_at_its_stages_end(house: House) -> None:
    await house.put("a")
    [start] = (await house.store.join("w", 1, [f"stage:{stage}" for stage in INGEST])).starts
    await house.store.pause("ada", "")
    await house.put("b")
    assert not (await house.store.finish("w", [finish(start)])).starts
    assert await house.states("a") == ("provisioning", "provisioning")
    assert not house.tree.runs.locked
    await house.store.leave("w")
    await house.store.resume()
    assert len(await house.work("v")) == 5 + 6


@pytest.mark.parametrize("kind", ["submitter", "profile", "batch"])
async def test_b18_what_is_held_waits_before_its_next_stage_and_resumes(house: House, kind: str) -> None:
    bid = await house.batch()
    await house.put("a", batch=bid, profile="images")
    name = {"submitter": str(U1), "profile": "images", "batch": bid}[kind]
    [start] = (await house.store.join("w", 1, ["stage:estimating", "stage:provisioning"])).starts
    await house.store.hold(kind, name, "ada", "stop")  # type: ignore[arg-type]
    assert not (await house.store.finish("w", [finish(start)])).starts
    assert await house.state("a") == "held"
    await house.store.tell(10)
    assert await house.states("a") == ("held", "held")
    assert (await house.entry("a")).last == "estimating"
    await house.store.unhold(kind, name)  # type: ignore[arg-type]
    again = await house.given("w")
    assert again.need == "stage:provisioning"
    await house.store.tell(10)
    assert await house.states("a") == ("provisioning", "provisioning")


async def test_a_job_of_its_own_is_held_at_once_and_goes_on_where_it_was(house: House) -> None:
    await house.put("a")
    with pytest.raises(NotHeld):
        await house.store.unhold("job", "a")
    await house.store.hold("job", "a", "ada", "wait")
    assert await house.states("a") == ("held", "held")
    assert not await house.work()
    await house.store.unhold("job", "a")
    assert await house.states("a") == ("pending", "pending")
    assert len(await house.work()) == 6


async def test_a_running_job_that_is_held_stops_before_its_next_stage(house: House) -> None:
    await house.put("a")
    [start] = (await house.store.join("w", 1, [f"stage:{stage}" for stage in INGEST])).starts
    await house.store.hold("job", "a", "ada", "wait")
    assert await house.states("a") == ("estimating", "estimating")
    assert not (await house.store.finish("w", [finish(start)])).starts
    assert await house.states("a") == ("held", "held")
    await house.store.unhold("job", "a")
    assert await house.states("a") == ("provisioning", "provisioning")


async def test_a_put_of_a_waiting_key_changes_its_body_in_both(house: House) -> None:
    await house.put("a")
    jid = (await house.job("a")).ledger
    body = json.dumps({"key": "a", "run": {"args": {"payload_url": "file:///new"}}}).encode()
    [put] = await house.store.put([ingest("a", priority=2)._replace(body=body)])
    assert put.outcome == "updated"  # type: ignore[union-attr]
    entry, job = await house.entry("a"), await house.job("a")
    assert (entry.jid, entry.priority, job.priority) == (jid, 2, 2)
    assert entry.configuration["payload_url"] == "file:///new"
    assert (job.body, job.status) == (body, entry.mark)


async def test_a_put_that_is_refused_leaves_no_trace_in_the_tree(house: House) -> None:
    await house.put("a")
    before = await everything(house.ledger)
    stranger = ingest("a", who=Submitter("user", "2"))
    assert await house.store.put([stranger]) == ["other-submitter"]
    assert await house.store.put([ingest("b", level=9)]) == ["no-class"]
    await house.store.configure(replace(house.tree.bridge.settings, max_total=1))
    assert await house.store.put([ingest("b"), ingest("c")]) == ["full-total", "full-total"]
    assert await everything(house.ledger) == before


async def test_a_put_that_is_refused_leaves_no_trace_in_its_batch(house: House) -> None:
    bid = await house.batch()
    await house.put("a", batch=bid)
    await house.store.configure(replace(house.tree.bridge.settings, max_total=1))
    before = await everything(house.ledger)
    assert await house.store.put([ingest("b", batch=bid)]) == ["full-total"]
    after = await everything(house.ledger)
    assert after.keys() == before.keys()
    assert {path for path in after if after[path] != before[path]} <= {
        f"{house.ledger.tree.batch(bid)}/expansion"
    }
    page = await house.store.batch_rows(bid, 0, 10)
    assert [row.id for row in page.rows] == ["a"]


async def test_a_put_of_a_running_key_is_a_version_of_its_own(house: House) -> None:
    bid = await house.batch()
    await house.put("a", batch=bid)
    [start] = (await house.store.join("w", 1, ["stage:estimating"])).starts
    first = (await house.job("a")).ledger
    [put] = await house.put("a")
    assert (put.outcome, put.version) == ("next-version", 2)
    second = (await house.job("a")).ledger
    assert first != second
    assert (await house.ledger.jobs.read(second)).batch == bid
    [again] = (await house.store.finish("w", [finish(start)])).starts
    assert (again.version, again.ledger) == (2, second)
    await house.store.tell(10)
    old = await house.ledger.jobs.read(first)
    assert (old.state, old.standing.code) == ("failed", "superseded")
    await house.store.leave("w")
    await house.store.hand_back("w", [again.lease])
    await house.store.seal_batch(bid)
    assert len(await house.work("v")) == 6
    report = await reported(house, bid)
    assert [row["key"] for row in report["completed"]] == ["a"]


async def test_a_put_of_an_ended_key_starts_afresh_outside_a_reported_batch(house: House) -> None:
    bid = await house.batch()
    await house.put("a", batch=bid)
    await house.store.seal_batch(bid)
    await house.work()
    assert await house.store.put([ingest("a")]) == ["reporting"]
    await reported(house, bid)
    [put] = await house.put("a")
    assert (put.outcome, put.version) == ("created", 2)
    assert (await house.entry("a")).batch == ""
    assert len(await house.work()) == 6


async def test_expansion_under_the_lock_makes_each_row_once(house: House) -> None:
    bid = await house.batch(sealed=True, expanding=True)
    errand = await house.store.lock_batch("clerk", b"t" * 16)
    assert errand
    assert errand.work == "expand"
    orders = [ingest(f"k{n}", batch=bid, token=b"t" * 16, only_new=True, exempt=True) for n in range(150)]
    first = await house.store.put(orders[:100])
    again = await house.store.put(orders)
    assert {answer.outcome for answer in first} == {"created"}  # type: ignore[union-attr]
    assert [answer.outcome for answer in again] == ["known"] * 100 + ["created"] * 50  # type: ignore[union-attr]
    assert await house.store.put([orders[0]._replace(token=b"u" * 16, id="z")]) == ["lock-lost"]
    await house.store.seal_batch(bid, token=b"t" * 16)
    await house.store.unlock_batch(bid, b"t" * 16)
    assert await house.store.put([ingest("late", batch=bid)]) == ["sealed"]
    rows: list[str] = []
    after: int | None = 0
    while after is not None:
        page = await house.store.batch_rows(bid, after, 40)
        rows += [row.id for row in page.rows]
        after = page.next
    assert rows == [f"k{n}" for n in range(150)]


async def test_a_key_that_is_unended_elsewhere_is_refused_in_its_row(house: House) -> None:
    await house.put("a")
    bid = await house.batch()
    assert await house.store.put([ingest("a", batch=bid, only_new=True)]) == ["other-batch"]


async def test_a_deleted_job_is_named_in_the_report(house: House) -> None:
    bid = await house.batch()
    await house.put("a", "b", batch=bid)
    await house.store.seal_batch(bid)
    await house.store.remove("a")
    assert await house.store.read(["a"]) == [None]
    await house.work()
    report = await reported(house, bid)
    assert [row["key"] for row in report["deleted"]] == ["a"]
    assert [row["key"] for row in report["completed"]] == ["b"]
    await house.store.remove_batch(bid)


async def test_b22_the_same_external_id_twice_is_one_batch(house: House) -> None:
    first = await house.batch(external_id="x")
    assert await house.batch(external_id="x") == first
    assert len((await house.store.batches()).batches) == 1


async def test_b22_another_submitters_external_id_is_refused(house: House) -> None:
    await house.batch(external_id="x")
    with pytest.raises(OtherSubmitter):
        await house.batch(external_id="x", who=Submitter("user", "2"))


async def test_a_worker_that_serves_one_stage_hands_the_job_over(house: House) -> None:
    await house.put("a")
    [start] = (await house.store.join("one", 1, ["stage:estimating"])).starts
    await house.store.join("two", 1, ["stage:provisioning"])
    shift = await house.store.finish("one", [finish(start)])
    assert not shift.starts
    [carried] = await house.store.park("two", 1)
    assert (carried.need, carried.data) == ("stage:provisioning", b'"stage:estimating"')  # type: ignore[union-attr]
    assert await house.states("a") == ("provisioning", "provisioning")


async def test_a_transient_failure_is_tried_again_and_changes_no_state(house: House) -> None:
    await house.put("a")
    [start] = (await house.store.join("w", 1, ["stage:estimating"])).starts
    await house.store.finish("w", [finish(start, "error", "busy", transient=True)])
    assert await house.states("a") == ("estimating", "estimating")
    house.clock.at(10)
    again = await house.given("w")
    assert (again.attempt, (await house.entry("a")).standing.attempt) == (2, 2)


async def test_what_expires_in_line_is_told_to_the_tree(house: House) -> None:
    bid = await house.batch()
    await house.put("a", batch=bid, expires_at=house.clock.now + 5_000_000)
    await house.store.seal_batch(bid)
    house.clock.at(6)
    await house.store.tick()
    assert await house.states("a") == ("failed", "pending")
    await house.store.tell(10)
    await house.store.tell(10)
    assert await house.states("a") == ("failed", "failed")
    assert (await house.entry("a")).standing.code == "expired"
    batch = await house.store.batch(bid)
    assert batch
    assert batch.state == "reporting"


async def test_what_is_swept_from_the_line_goes_from_the_tree(house: House) -> None:
    empty = await everything(house.ledger)
    await house.put("a")
    await house.work()
    house.clock.at(8 * 24 * 3600)
    await house.store.tick()
    await house.store.tell(10)
    assert await everything(house.ledger) == empty
