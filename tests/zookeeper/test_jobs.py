"""Jobs in the tree, by the numbers of the scenarios: index entry, bucket and status say the same."""

import asyncio
import json
from typing import Any

import pytest

from maitred.core.job import Submitter
from maitred.core.stages import INGEST
from maitred.errors import (
    AlreadyEnded,
    BatchReporting,
    IllegalMove,
    LockLost,
    NotFailed,
    Overtaken,
    TooLarge,
    UnknownJob,
)
from maitred.store.zookeeper.check import check
from maitred.store.zookeeper.ledger import Ledger
from maitred.store.zookeeper.payloads import Reason
from maitred.store.zookeeper.session import Create, Delete, Op, Put
from tests.conftest import Clock
from tests.zookeeper.conftest import Opener
from tests.zookeeper.party import (
    RUN,
    batch_of,
    buckets,
    entries,
    everything,
    failed,
    into,
    newcomer,
    order_of,
)

OTHER_RUN = b"o" * 16


def bucket(ledger: Ledger, kind: str) -> str:
    return ledger.tree.layout.buckets[kind]


async def status_of(ledger: Ledger, jid: str) -> dict[str, Any]:
    node = await ledger.session.get(ledger.tree.job(jid, "status"))
    assert node
    status: dict[str, Any] = json.loads(node.data)
    return status


async def test_b6_a_new_job_is_pending_with_one_index_entry_in_its_one_bucket(ledger: Ledger) -> None:
    bid, [jid] = await batch_of(ledger, "a")
    job = await ledger.jobs.read(jid)
    assert (job.state, job.last, job.retries, job.priority, job.batch) == ("pending", None, 0, 5, bid)
    assert await entries(ledger, jid) == [f"pending/05-{jid}"]
    assert await buckets(ledger, bid) == {bucket(ledger, "pending"): [jid]}
    assert json.loads(job.body) == {
        "key": "a",
        "run": {"args": {"payload_url": "file:///a", "payload_type": "file", "local_id": "local-a"}},
    }
    assert (job.submitter, job.profile) == (Submitter("user", "1"), "images")
    assert (job.standing.release, job.standing.arrival, job.standing.key) == (7, 9, "a")


async def test_the_nodes_of_a_job_are_those_of_the_layout(ledger: Ledger) -> None:
    bid, [jid] = await batch_of(ledger, "a")
    nodes = await everything(ledger, ledger.tree.job(jid))
    names = {path.removeprefix(ledger.tree.job(jid)) for path in nodes}
    facts = {"/bid", "/configuration", "/status", "/place", "/priority", "/space_needed", "/identifiers"}
    assert names == facts | {""}
    assert nodes[ledger.tree.job(jid)] == b""
    assert nodes[ledger.tree.job(jid, "bid")] == bid.encode()
    assert nodes[ledger.tree.job(jid, "priority")] == b"5"
    configuration = json.loads(nodes[ledger.tree.job(jid, "configuration")])
    shared = {"profile_name", "submitter", "payload_url", "payload_type", "response_type", "local_id", "run"}
    seed = ledger.tree.layout.name == "seed"
    assert configuration.keys() == (shared | {"batch_id", "working_dir"} if seed else shared)
    status = await status_of(ledger, jid)
    assert status["status"] == "Pending"
    assert status.keys() == {"status", "last_successful_status", "retry_count"} | (
        {"last_modification_date"} if seed else {"last_modified", "message"}
    )


async def test_b7_the_end_of_a_stage_moves_the_one_index_entry(ledger: Ledger) -> None:
    bid, [jid] = await batch_of(ledger, "a")
    started = await ledger.jobs.start(await ledger.jobs.read(jid), RUN, 1)
    assert (started.state, started.last) == ("estimating", None)
    assert await buckets(ledger, bid) == {bucket(ledger, "processing"): [jid]}
    await ledger.jobs.advance(
        jid, RUN, b'{"size":7}', priority=3, space=70, identifiers=b'{"primary_id":"ark"}'
    )
    job = await ledger.jobs.read(jid)
    assert (job.state, job.last, job.priority, job.space) == ("provisioning", "estimating", 3, 70)
    assert (job.standing.data, job.identifiers) == (b'{"size":7}', b'{"primary_id":"ark"}')
    assert await entries(ledger, jid) == [f"provisioning/03-{jid}"]
    assert (await status_of(ledger, jid))["last_successful_status"] == "Estimating"


async def test_b8_lower_priorities_go_first_and_then_the_older(ledger: Ledger) -> None:
    added = await ledger.intake.add("", [newcomer("a"), newcomer("b", priority=2), newcomer("c")])
    first, second, third = (each.jid for each in added)
    assert await order_of(ledger) == [second, first, third]


async def test_b10_through_all_stages_a_job_is_completed(ledger: Ledger) -> None:
    bid, [jid] = await batch_of(ledger, "a")
    seen = []
    job = await ledger.jobs.read(jid)
    for stage in INGEST:
        job = await ledger.jobs.start(job, RUN, 1)
        seen.append(job.state)
        assert job.state == stage
        job = await ledger.jobs.advance(jid, RUN, b"{}", seen=job)
    assert tuple(seen) == INGEST
    assert (job.state, job.last) == ("completed", "notify")
    assert await buckets(ledger, bid) == {bucket(ledger, "completed"): [jid]}
    assert await ledger.jobs.read(jid) == job


@pytest.mark.parametrize("stage", INGEST)
async def test_b15_a_job_resumes_in_the_stage_that_failed(ledger: Ledger, stage: str) -> None:
    bid, [jid] = await batch_of(ledger, "a")
    job = await failed(ledger, jid, stage)
    before = INGEST[INGEST.index(stage) - 1] if stage != INGEST[0] else None
    assert (job.state, job.last, job.standing.message) == ("failed", before, "no route")
    assert await buckets(ledger, bid) == {bucket(ledger, "failed"): [jid]}
    job = await ledger.jobs.retry(jid)
    assert (job.state, job.last, job.retries) == (stage, before, 1)
    assert await entries(ledger, jid) == [f"{stage}/05-{jid}"]
    assert (await into(ledger, jid, "completed")).last == "notify"


async def test_a_job_that_failed_before_its_first_start_waits_again_as_pending(ledger: Ledger) -> None:
    _, [jid] = await batch_of(ledger, "a")
    await ledger.jobs.fail(jid, None, "expired", "too late")
    job = await ledger.jobs.retry(jid)
    assert (job.state, job.last, job.retries) == ("pending", None, 1)


async def test_b16_an_illegal_move_changes_nothing(ledger: Ledger) -> None:
    _, [jid] = await batch_of(ledger, "a")
    before = await everything(ledger)
    with pytest.raises(IllegalMove):
        await ledger.jobs.change(await ledger.jobs.read(jid), "recording")
    with pytest.raises(NotFailed):
        await ledger.jobs.retry(jid)
    assert await everything(ledger) == before
    await into(ledger, jid, "completed")
    before = await everything(ledger)
    with pytest.raises(IllegalMove):
        await ledger.jobs.change(await ledger.jobs.read(jid), "processing")
    with pytest.raises(AlreadyEnded):
        await ledger.jobs.prioritise(jid, 1)
    assert await everything(ledger) == before


async def test_b18_a_held_job_goes_on_when_its_last_reason_is_gone(ledger: Ledger) -> None:
    bid, [jid] = await batch_of(ledger, "a")
    await into(ledger, jid, "downloading")
    profile, own = Reason("profile", "images", "op", "full disk", 5), Reason("job", "a", "op")
    await ledger.jobs.hold(jid, profile)
    job = await ledger.jobs.hold(jid, own)
    assert (job.state, job.last, job.standing.holds) == ("held", "provisioning", (profile, own))
    assert await buckets(ledger, bid) == {bucket(ledger, "held"): [jid]}
    assert (await ledger.jobs.unhold(jid, "profile", "images")).state == "held"
    job = await ledger.jobs.unhold(jid, "job", "a")
    assert (job.state, job.last, job.standing.holds) == ("downloading", "provisioning", ())


async def test_b18_a_hold_of_a_running_job_acts_when_its_stage_ends(ledger: Ledger) -> None:
    bid, [jid] = await batch_of(ledger, "a")
    await ledger.jobs.start(await ledger.jobs.read(jid), RUN, 1)
    own, flag = Reason("job", "a", "op"), Reason("profile", "images")
    job = await ledger.jobs.hold(jid, own)
    assert (job.state, job.standing.holds) == ("estimating", (own,))
    job = await ledger.jobs.advance(jid, RUN, b"{}", holds=(flag,))
    assert (job.state, job.last, job.standing.holds) == ("held", "estimating", (own, flag))
    assert await buckets(ledger, bid) == {bucket(ledger, "held"): [jid]}
    await ledger.jobs.unhold(jid, "job", "a")
    job = await ledger.jobs.unhold(jid, "profile", "images")
    assert (job.state, job.last) == ("provisioning", "estimating")
    assert await ledger.jobs.read(jid) == job


async def test_a_held_job_that_failed_before_its_first_stage_has_finished_nothing(ledger: Ledger) -> None:
    _, [jid] = await batch_of(ledger, "a")
    await ledger.jobs.hold(jid, Reason("job", "a"))
    job = await ledger.jobs.fail(jid, None, "cancelled", "")
    assert (job.state, job.last) == ("failed", None)
    assert (await ledger.jobs.retry(jid, release=70)).standing.release == 70


async def test_a_put_of_a_waiting_key_replaces_its_body(ledger: Ledger) -> None:
    _, [jid] = await batch_of(ledger, "a")
    order = newcomer("a", priority=2, body=b'{"key":"a","run":{"args":{"local_id":"new"}}}').order
    job = await ledger.jobs.rewrite(jid, order)
    assert (job.body, job.priority, job.standing.release) == (order.body, 2, 7)
    assert job.configuration["local_id"] == "new"
    assert await ledger.jobs.read(jid) == job
    assert await entries(ledger, jid) == [f"pending/02-{jid}"]


async def test_whoever_rebuilds_a_line_is_given_every_job_that_has_not_ended(ledger: Ledger) -> None:
    _, [first, second, third, fourth] = await batch_of(ledger, "a", "b", "c", "d")
    await into(ledger, first, "completed")
    await into(ledger, second, "downloading")
    await ledger.jobs.hold(third, Reason("job", "c"))
    given = [(job.jid, job.state) async for job in ledger.unended()]
    assert given == [(fourth, "pending"), (third, "held"), (second, "downloading")]


async def test_b18_holds_of_many_are_flags_with_any_name(ledger: Ledger) -> None:
    names = ["images", "a/b:c_d", ".", "..", "", "é\n", "%", "%2E"]
    for name in names:
        await ledger.hold(Reason("profile", name, "op", "why", 3))
    await ledger.hold(Reason("submitter", "user.7"))
    await ledger.hold(Reason("profile", "images", "op", "another reason", 4))
    held = await ledger.holds()
    assert {each.name for each in held if each.kind == "profile"} == set(names)
    assert Reason("profile", "images", "op", "another reason", 4) in held
    assert await ledger.unhold("profile", "a/b:c_d")
    assert not await ledger.unhold("profile", "a/b:c_d")
    assert len(await ledger.holds()) == len(names)


async def test_b19_a_change_of_priority_moves_the_one_entry(ledger: Ledger) -> None:
    added = await ledger.intake.add("", [newcomer("a"), newcomer("b", priority=9)])
    first, second = (each.jid for each in added)
    await ledger.jobs.prioritise(first, 15)
    assert await order_of(ledger) == [second, first]
    assert await entries(ledger, first) == [f"pending/15-{first}"]


@pytest.mark.parametrize(("priority", "name"), [(105, "99"), (-1, "00")])
async def test_a_priority_beyond_two_digits_counts_as_the_nearest(
    ledger: Ledger, priority: int, name: str
) -> None:
    [added] = await ledger.intake.add("", [newcomer("a")])
    job = await ledger.jobs.prioritise(added.jid, priority)
    assert job.priority == priority
    assert await entries(ledger, added.jid) == [f"pending/{name}-{added.jid}"]


async def test_b21_a_late_write_of_a_run_that_is_over_is_refused(ledger: Ledger, connect: Opener) -> None:
    _, [jid] = await batch_of(ledger, "a")
    worker = await connect()
    await worker.jobs.start(await worker.jobs.read(jid), RUN, 1)
    lock = await worker.lock_job(jid, "w1", RUN)
    assert lock
    await ledger.jobs.fail(jid, None, "cancelled", "by an operator")
    before = await everything(ledger)
    with pytest.raises(LockLost):
        await worker.jobs.advance(jid, RUN, b"{}")
    with pytest.raises(LockLost):
        await worker.jobs.fail(jid, RUN, "error", "late")
    assert await everything(ledger) == before
    assert await worker.locks.give_up(lock)


async def test_of_two_runs_that_begin_at_once_one_has_the_job(ledger: Ledger, connect: Opener) -> None:
    _, [jid] = await batch_of(ledger, "a")
    other = await connect()
    job = await ledger.jobs.read(jid)
    begun = await asyncio.gather(
        ledger.jobs.start(job, RUN, 1), other.jobs.start(job, OTHER_RUN, 1), return_exceptions=True
    )
    assert sorted(type(each).__name__ for each in begun) == ["JobEntry", "Overtaken"]
    winner = (await ledger.jobs.read(jid)).standing.run
    loser = OTHER_RUN if winner == RUN.hex() else RUN
    with pytest.raises(LockLost):
        await ledger.jobs.advance(jid, loser, b"{}")
    assert (await ledger.jobs.advance(jid, bytes.fromhex(winner), b"{}")).last == "estimating"


async def test_what_else_changes_a_running_job_does_not_end_its_run(ledger: Ledger) -> None:
    _, [jid] = await batch_of(ledger, "a")
    seen = await ledger.jobs.start(await ledger.jobs.read(jid), RUN, 1)
    await ledger.jobs.prioritise(jid, 30)
    with pytest.raises(Overtaken):
        await ledger.jobs.change(seen, "provisioning")
    assert (await ledger.jobs.advance(jid, RUN, b"{}", seen=seen)).priority == 30


async def test_many_changes_of_one_job_at_once_all_take_place(ledger: Ledger, connect: Opener) -> None:
    _, [jid] = await batch_of(ledger, "a")
    others = [await connect() for _ in range(2)]
    before = (await ledger.jobs.read(jid)).version
    await asyncio.gather(
        *(each.jobs.prioritise(jid, number) for number, each in enumerate([*others, ledger], 10))
    )
    assert (await ledger.jobs.read(jid)).version == before + 3


async def test_a_run_that_is_given_up_leaves_the_job_at_its_stage(ledger: Ledger) -> None:
    _, [jid] = await batch_of(ledger, "a")
    await ledger.jobs.start(await ledger.jobs.read(jid), RUN, 2)
    job = await ledger.jobs.step_back(jid, RUN, attempt=1)
    assert (job.state, job.standing.run, job.standing.attempt, job.retries) == ("estimating", "", 1, 0)
    assert (await ledger.jobs.start(job, OTHER_RUN, 2)).standing.run == OTHER_RUN.hex()


async def test_a_deleted_job_leaves_its_name_with_its_batch(ledger: Ledger) -> None:
    bid, [first, second] = await batch_of(ledger, "a", "b")
    await ledger.jobs.delete(first)
    rows = {jid: row async for jid, row in ledger.batches.rows(bid)}
    assert {jid: row.state for jid, row in rows.items()} == {first: "deleted", second: "pending"}
    assert json.loads(rows[first].label)["key"] == "a"
    assert (await ledger.reader.counts(bid))["deleted"] == 1
    assert await ledger.reader.unfinished(bid) == 1
    assert await order_of(ledger) == [second]
    if not ledger.tree.layout.keeps_deleted:
        assert await entries(ledger, first) == []
        with pytest.raises(UnknownJob):
            await ledger.jobs.read(first)


async def test_while_a_batch_is_reported_its_jobs_stay_as_they_are(ledger: Ledger) -> None:
    bid, [jid] = await batch_of(ledger, "a")
    await failed(ledger, jid)
    lock = await ledger.batches.lock(bid, "clerk", RUN)
    assert lock
    assert await ledger.batches.begin_report(bid, lock)
    for refused in (ledger.jobs.retry, ledger.jobs.delete):
        with pytest.raises(BatchReporting):
            await refused(jid)
    assert (await ledger.jobs.read(jid)).state == "failed"


async def test_the_next_version_takes_the_older_ones_part_in_the_batch(ledger: Ledger) -> None:
    bid, [old] = await batch_of(ledger, "a")
    job = await ledger.jobs.start(await ledger.jobs.read(old), RUN, 1)
    fence = await ledger.jobs.batch_fence(bid)
    new = await ledger.intake.add_version(job, newcomer("a", bid=bid)._replace(version=2), fence)
    assert await buckets(ledger, bid) == {bucket(ledger, "pending"): [new]}
    await ledger.jobs.advance(old, RUN, b"{}")
    assert await entries(ledger, old) == [f"provisioning/05-{old}"]
    assert await buckets(ledger, bid) == {bucket(ledger, "pending"): [new]}
    with pytest.raises(Overtaken):
        await ledger.intake.add_version(job, newcomer("a", bid=bid), await ledger.jobs.batch_fence(bid))


async def test_a_message_of_ten_megabytes_is_cut(ledger: Ledger) -> None:
    _, [jid] = await batch_of(ledger, "a")
    job = await failed(ledger, jid, message="x" * 10_000_000)
    assert job.standing.message.endswith("(10000000 characters)")
    assert len(job.standing.message) < 5_000
    assert await ledger.jobs.read(jid) == job


async def test_what_is_too_large_for_a_node_is_refused_and_nothing_is_made(ledger: Ledger) -> None:
    body = json.dumps({"key": "a", "run": {"args": {"text": "x" * 1_000_000}}}).encode()
    with pytest.raises(TooLarge):
        await ledger.intake.add("", [newcomer("a", body=body)])
    _, [jid] = await batch_of(ledger, "b")
    await ledger.jobs.start(await ledger.jobs.read(jid), RUN, 1)
    with pytest.raises(TooLarge):
        await ledger.jobs.advance(jid, RUN, b"x" * 1_000_000)
    assert (await ledger.jobs.read(jid)).state == "estimating"


@pytest.mark.parametrize(
    "body", [b"no JSON", b"\xff\x00", b"[1]", b'{"key":"k","run":{"handler":"h"},"bulk":true}']
)
async def test_a_body_comes_back_as_it_was(ledger: Ledger, body: bytes) -> None:
    [added] = await ledger.intake.add("", [newcomer("a", body=body)])
    assert (await ledger.jobs.read(added.jid)).body == body


async def test_times_are_written_as_the_layout_has_them(ledger: Ledger, clock: Clock) -> None:
    clock.now = 1_700_000_000_123_456
    [added] = await ledger.intake.add("", [newcomer("a")])
    status = await status_of(ledger, added.jid)
    if ledger.tree.layout.name == "seed":
        assert status["last_modification_date"] == "2023-11-14T22:13:20.123456Z"
    else:
        assert status["last_modified"].startswith("2023-11-1")
        assert len(status["last_modified"]) == len("2023-11-14 22:13:20 +0000")
    assert (await ledger.jobs.read(added.jid)).modified_at == clock.now


async def test_a_job_that_another_program_moved_is_read_as_it_says(ledger: Ledger) -> None:
    _, [jid] = await batch_of(ledger, "a")
    status = await status_of(ledger, jid)
    status |= {"status": "Downloading", "last_successful_status": "Provisioning"}
    tree = ledger.tree
    ops: list[Op] = [
        Put(tree.job(jid, "status"), json.dumps(status).encode()),
        Delete(tree.entry("pending", 5, jid)),
        Create(tree.entry("downloading", 5, jid)),
    ]
    job = await ledger.jobs.read(jid)
    if tree.layout.name == "seed":
        ops += [
            Delete(tree.bucket(job.batch, "pending", jid)),
            Create(tree.bucket(job.batch, "processing", jid)),
        ]
    await ledger.session.multi(ops)
    job = await ledger.jobs.read(jid)
    assert (job.state, job.last, job.standing.stage) == ("downloading", "provisioning", 3)
    await ledger.jobs.start(job, RUN, 1)
    assert (await ledger.jobs.advance(jid, RUN, b"{}")).last == "downloading"


async def test_a_pipeline_with_a_stage_of_its_own_has_its_index(connect: Opener) -> None:
    ledger = await connect()
    stages = ("estimating", "processing", "storing", "recording")
    other = Ledger(ledger.session, f"{ledger.tree.root}/other", layout=ledger.tree.layout.name, stages=stages)
    await other.open()
    _, [jid] = await batch_of(other, "a")
    job = await into(other, jid, "storing")
    assert (job.last, await entries(other, jid)) == ("processing", [f"storing/05-{jid}"])
    assert (await into(other, jid, "completed")).last == "recording"
    assert await check(other) == []
