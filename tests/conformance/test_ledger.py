"""B1-B23: the Ledger's cases, on the reference and on the real stores; B24 is in `test_check_ledger.py`."""

import asyncio

import pytest
from redis.asyncio import Redis

from maitred.core.batch import BatchOrder, BatchState
from maitred.core.job import Order, Phase
from maitred.core.settings import SECOND
from maitred.core.stages import INGEST, check_move
from maitred.errors import BatchUnfinished, IllegalMove, NotFailed, UnknownBatch
from maitred.store.port import Store
from tests.conformance.ledger import OTHER_TOKEN, TOKEN, Ledger, needs
from tests.conformance.party import U1, U2, U7
from tests.conftest import SERVERS, Clock

SUBMISSION = b'{"profile": "p", "payload": {"url": "https://\xc3\xa9/:_"}}\x00\xff'


def submission(external: str, *, expanding: bool = True) -> BatchOrder:
    return BatchOrder(external, U1, "p", SUBMISSION, expanding=expanding, sealed=True)


async def test_b1_a_submitted_batch_is_pending_kept_verbatim_and_found_by_its_external_id(
    ledger: Ledger,
) -> None:
    await ledger.open()
    made = await ledger.store.create_batch(submission("run/7:_"))
    batch = await ledger.batch(made.id)
    assert made.created
    assert (batch.state, batch.submission, batch.external_id) == ("pending", SUBMISSION, "run/7:_")
    found = (await ledger.store.batches(external_id="run/7:_")).batches
    assert [each.id for each in found] == [made.id]


async def test_b2_an_unknown_batch_is_a_typed_error_and_nothing_is_created(ledger: Ledger) -> None:
    await ledger.open()
    before, store, unknown = await ledger.store.snapshot(), ledger.store, "bid0000000007"
    assert await store.batch(unknown) is None
    for refused in (
        store.seal_batch(unknown),
        store.update_batch(unknown),
        store.remove_batch(unknown),
        store.batch_rows(unknown, 0, 10),
        store.hold("batch", unknown, "ann", ""),
        store.unhold("batch", unknown),
    ):
        with pytest.raises(UnknownBatch) as error:
            await refused
        assert error.value.id == unknown
    assert await ledger.put("a", batch=unknown) == "no-batch"
    assert await ledger.store.snapshot() == before


async def test_b3_of_two_pending_batches_the_first_comes_first_then_the_second_then_none(
    ledger: Ledger,
) -> None:
    await ledger.open()
    first, second = [(await ledger.store.create_batch(submission(name))).id for name in "ab"]
    errands = [await ledger.store.lock_batch("s", token * 16) for token in (b"1", b"2", b"3")]
    assert [errand and (errand.batch.id, errand.work) for errand in errands] == [
        (first, "expand"),
        (second, "expand"),
        None,
    ]


async def test_b4_when_the_session_of_a_lock_ends_the_lock_is_gone_and_the_state_unchanged(
    ledger: Ledger,
) -> None:
    await ledger.open(slots=0, lease=15 * SECOND)
    id = (await ledger.store.create_batch(submission("a"))).id
    assert await ledger.store.lock_batch("first", TOKEN)
    await ledger.tick(15)
    assert (await ledger.batch(id)).state is BatchState.PENDING
    errand = await ledger.store.lock_batch("second", OTHER_TOKEN)
    assert errand
    assert (errand.batch.id, errand.batch.owner) == (id, "second")


async def test_b5_a_batch_that_a_live_session_has_locked_is_skipped_by_others(ledger: Ledger) -> None:
    await ledger.open(slots=0, lease=15 * SECOND)
    first, second = [(await ledger.store.create_batch(submission(name))).id for name in "ab"]
    assert await ledger.store.lock_batch("first", TOKEN)
    await ledger.tick(10)
    await ledger.store.keep_batch(first, TOKEN)
    await ledger.tick(10)
    errand = await ledger.store.lock_batch("second", OTHER_TOKEN)
    assert errand
    assert errand.batch.id == second


async def test_b6_a_new_job_is_pending_with_nothing_finished_and_one_entry_everywhere(
    ledger: Ledger,
) -> None:
    await ledger.open(slots=0)
    batch = await ledger.batch_of("a", "j")
    job = await ledger.job("j")
    assert await ledger.state("j") == "pending"
    assert await ledger.last_success("j") is None
    assert (job.retries, job.priority, job.batch) == (0, 5, batch)
    assert await ledger.line() == ["j"]
    assert await ledger.counts(batch) == {"pending": 1}


async def test_b7_when_a_stage_ends_the_job_stands_once_in_the_next_and_its_last_success_is_the_one_left(
    ledger: Ledger,
) -> None:
    await ledger.open(slots=0)
    batch = await ledger.batch_of("a", "j")
    await ledger.join("w", 1, ["estimating"])
    await ledger.done("j", result=b"data", message="estimated")
    job = await ledger.job("j")
    assert (await ledger.state("j"), job.phase, job.message) == ("provisioning", Phase.WAITING, "estimated")
    assert await ledger.last_success("j") == "estimating"
    assert await ledger.line() == ["j"]
    assert len((await ledger.store.snapshot()).places) == 1
    assert await ledger.counts(batch) == {"processing": 1}
    await ledger.join("v", 1, ["provisioning"])
    assert ledger.runs["j"][1].data == b"data"


@pytest.mark.parametrize("order", ["newest-first", "oldest-first"])
async def test_b8_of_priorities_5_2_5_the_2_goes_first_then_the_older_5(ledger: Ledger, order: str) -> None:
    await ledger.open(slots=0, order=order)
    for id, who, priority in (("a", U1, 5), ("b", U2, 2), ("c", U7, 5)):
        await ledger.put(id, who, priority=priority)
        ledger.clock.now += SECOND
    for name in "xyz":
        await ledger.join(name)
    assert ledger.order == ["b", "a", "c"]


async def test_b9_a_batch_with_unfinished_jobs_cannot_be_deleted_and_afterwards_leaves_no_trace(
    ledger: Ledger,
) -> None:
    await ledger.open()
    batch = await ledger.batch_of("a", "j", "k", sealed=True)
    await ledger.complete("j")
    with pytest.raises(BatchUnfinished):
        await ledger.store.remove_batch(batch)
    await ledger.fail("k")
    await ledger.report(batch)
    await ledger.store.remove_batch(batch)
    assert await ledger.store.batch(batch) is None
    assert await ledger.store.read(["j", "k"]) == [None, None]
    assert (await ledger.store.batches()).batches == []
    assert (await ledger.store.batches(external_id="a")).batches == []
    left = await ledger.store.snapshot()
    assert (left.jobs, left.newest, left.ended, left.batches, left.trash) == ({}, {}, [], {}, {})
    again = await ledger.store.create_batch(submission("a"))
    assert again.created
    assert again.id != batch


async def test_b10_a_job_that_went_through_all_stages_is_completed_in_its_batch_too(ledger: Ledger) -> None:
    await ledger.open()
    batch = await ledger.batch_of("a", "j")
    for stage in INGEST:
        assert await ledger.state("j") == stage
        await ledger.done("j", result=stage.encode())
    job = await ledger.job("j")
    assert (await ledger.state("j"), job.result) == ("completed", b"notify")
    assert await ledger.last_success("j") == "notify"
    assert [run.stage for run in job.timeline] == [1, 2, 3, 4, 5, 6]
    assert await ledger.counts(batch) == {"completed": 1}


async def test_b11_there_is_one_report_when_the_last_job_has_ended_and_none_before(ledger: Ledger) -> None:
    await ledger.open()
    batch = await ledger.batch_of("a", "j", "k", "l", sealed=True)
    await ledger.complete("j")
    await ledger.complete("k")
    assert await ledger.store.lock_batch("clerk", TOKEN) is None
    assert (await ledger.batch(batch)).state is BatchState.PROCESSING
    await ledger.complete("l")
    state, told = await ledger.report(batch)
    assert (state, [row.state for row in told]) == ("completed", ["completed"] * 3)
    assert await ledger.store.lock_batch("clerk", TOKEN) is None
    assert (await ledger.batch(batch)).sequence == 1


async def test_b12_one_failed_job_fails_the_batch_and_its_message_is_kept(ledger: Ledger) -> None:
    await ledger.open()
    batch = await ledger.batch_of("a", "j", "k", sealed=True)
    await ledger.complete("j")
    await ledger.fail("k", "the digest does not match")
    state, told = await ledger.report(batch)
    assert state is BatchState.FAILED
    assert [(row.id, row.state, row.message) for row in told] == [
        ("j", "completed", ""),
        ("k", "failed", "the digest does not match"),
    ]
    assert (await ledger.batch(batch)).report == b"report"


async def test_b13_a_retried_job_resumes_where_it_failed_and_an_update_report_completes_its_batch(
    ledger: Ledger,
) -> None:
    await ledger.open()
    batch = await ledger.batch_of("a", "j", "k", sealed=True)
    await ledger.complete("k")
    await ledger.through("j", "notify")
    await ledger.fail("j")
    await ledger.report(batch)
    await ledger.retry("j")
    assert await ledger.state("j") == "notify"
    assert (await ledger.job("j")).retries == 1
    assert (await ledger.batch(batch)).state is BatchState.FAILED
    await ledger.done("j")
    assert await ledger.state("j") == "completed"
    assert (await ledger.batch(batch)).state is BatchState.FAILED
    await ledger.store.update_batch(batch)
    state, changed = await ledger.report(batch)
    assert (state, [row.id for row in changed]) == ("completed", ["j"])
    assert (await ledger.batch(batch)).sequence == 2


async def test_b14_an_update_report_without_a_change_is_stored_and_not_sent(ledger: Ledger) -> None:
    await ledger.open()
    batch = await ledger.batch_of("a", "j", sealed=True)
    await ledger.fail("j")
    await ledger.report(batch)
    await ledger.retry("j")
    await ledger.store.update_batch(batch)
    assert await ledger.store.lock_batch("clerk", TOKEN) is None
    await ledger.fail("j", "again")
    state, changed = await ledger.report(batch)
    shown = await ledger.batch(batch)
    assert (state, changed, shown.sequence, shown.unsent) == ("failed", [], 2, False)


@pytest.mark.parametrize("stage", INGEST)
async def test_b15_a_job_that_failed_in_a_stage_resumes_in_it(ledger: Ledger, stage: str) -> None:
    await ledger.open()
    await ledger.put("j")
    await ledger.through("j", stage)
    before = await ledger.last_success("j")
    await ledger.fail("j")
    assert await ledger.state("j") == "failed"
    assert await ledger.last_success("j") == before
    await ledger.retry("j")
    assert await ledger.state("j") == stage
    assert ledger.runs["j"][1].need == f"stage:{stage}"
    assert await ledger.last_success("j") == before
    await ledger.complete("j")
    assert await ledger.state("j") == "completed"


async def test_b16_an_illegal_move_is_refused_and_changes_nothing(ledger: Ledger) -> None:
    await ledger.open()
    batch = await ledger.batch_of("a", "j")
    ended = await ledger.batch_of("b", "k", sealed=True)
    await ledger.complete("k")
    await ledger.report(ended)
    before = await ledger.store.snapshot()
    with pytest.raises(IllegalMove):
        check_move(INGEST, "pending", "recording")
    with pytest.raises(IllegalMove) as error:
        await ledger.store.update_batch(batch)
    assert (error.value.old, error.value.new) == ("processing", "update-reporting")
    with pytest.raises(IllegalMove):
        await ledger.store.update_batch(ended)
    with pytest.raises(IllegalMove):
        await ledger.hold("batch", ended)
    with pytest.raises(NotFailed):
        await ledger.retry("j")
    with pytest.raises(NotFailed):
        await ledger.retry("k")
    assert await ledger.store.snapshot() == before


async def test_b17_a_paused_queue_accepts_and_starts_nothing_and_a_job_stops_at_the_end_of_its_stage(
    ledger: Ledger,
) -> None:
    await ledger.open()
    await ledger.put("j")
    await ledger.store.pause("ann", "maintenance")
    assert await ledger.put("k") == "created"
    assert "k" not in ledger.runs
    await ledger.done("j")
    assert "j" not in ledger.runs
    assert (await ledger.state("j"), (await ledger.job("j")).phase) == ("provisioning", Phase.WAITING)
    paused = (await ledger.view("j")).paused
    assert paused
    assert (paused.by, paused.reason) == ("ann", "maintenance")
    await ledger.store.resume()
    await ledger.look()
    assert {"j", "k"} <= ledger.runs.keys()


async def test_b18_jobs_of_a_held_profile_are_held_before_their_next_stage_and_resumed_there(
    ledger: Ledger,
) -> None:
    await ledger.open()
    await ledger.put("j", profile="p")
    await ledger.put("other", profile="q")
    await ledger.hold("profile", "p", "the store is full")
    assert await ledger.state("j") == "estimating"
    await ledger.done("j")
    await ledger.done("other")
    view = await ledger.view("j")
    assert (await ledger.state("j"), await ledger.last_success("j")) == ("held", "estimating")
    assert [(held.kind, held.name, held.by, held.reason) for held in view.holds] == [
        ("profile", "p", "ann", "the store is full")
    ]
    assert await ledger.state("other") == "provisioning"
    await ledger.unhold("profile", "p")
    assert await ledger.state("j") == "provisioning"
    assert "j" in ledger.runs


async def test_b19_another_priority_moves_a_waiting_job_and_leaves_it_one_place(ledger: Ledger) -> None:
    await ledger.open(slots=0)
    await ledger.put("a")
    await ledger.put("b", U2)
    assert await ledger.line() == ["a", "b"]
    await ledger.store.prioritise("a", 15)
    assert await ledger.line() == ["b", "a"]
    assert len((await ledger.store.snapshot()).places) == 2
    assert (await ledger.job("a")).priority == 15


async def test_b20_a_job_whose_worker_died_is_taken_up_in_the_same_stage_without_a_retry(
    ledger: Ledger,
) -> None:
    await ledger.open(slots=0, lease=15 * SECOND)
    await ledger.join("dies")
    await ledger.put("j")
    await ledger.through("j", "downloading")
    await ledger.store.renew("dies", [ledger.lease("j")])
    await ledger.tick(16)
    assert (await ledger.job("j")).phase is Phase.WAITING
    await ledger.join("lives")
    assert ledger.runs["j"][0] == "lives"
    assert ledger.runs["j"][1].need == "stage:downloading"
    job = await ledger.job("j")
    assert (await ledger.state("j"), job.retries, job.attempt) == ("downloading", 0, 2)


async def test_b21_a_cancelled_job_has_failed_at_once_and_its_workers_late_write_is_refused(
    ledger: Ledger,
) -> None:
    await ledger.open()
    batch = await ledger.batch_of("a", "j")
    await ledger.through("j", "downloading")
    await ledger.store.cancel("j", "cancelled by ann: wrong file")
    job = await ledger.job("j")
    assert (await ledger.state("j"), job.code, job.message) == (
        "failed",
        "cancelled",
        "cancelled by ann: wrong file",
    )
    assert await ledger.counts(batch) == {"failed": 1}
    before = ledger.lease("j")
    shift = await ledger.end("j", result=b"late")
    assert shift.lost == [before]
    assert (await ledger.job("j")).result == b""
    assert await ledger.last_success("j") == "provisioning"
    assert (await ledger.store.snapshot()).workers["w"].holds == ()
    await ledger.retry("j")
    assert await ledger.state("j") == "downloading"


async def test_b22_the_same_external_id_twice_is_one_batch(ledger: Ledger) -> None:
    await ledger.open()
    made = await asyncio.gather(*(ledger.store.create_batch(submission("x")) for _ in range(10)))
    assert len({put.id for put in made}) == 1
    assert sum(put.created for put in made) == 1
    assert [batch.submission for batch in (await ledger.store.batches()).batches] == [SUBMISSION]


class TestB23:
    """Only a server can be asked what a call costs it."""

    @pytest.fixture(params=SERVERS)
    def kind(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    @staticmethod
    async def cost(ledger: Ledger, server: "Redis", worker: str) -> int:
        """Count the commands with which one job is taken and ends its first stage."""
        before = await server.info("commandstats")
        await ledger.store.join(worker, 1, needs("estimating"))
        await ledger.store.leave(worker)
        after = await server.info("commandstats")
        calls = {name: stats["calls"] for name, stats in before.items()}
        return sum(stats["calls"] - calls.get(name, 0) for name, stats in after.items() if "info" not in name)

    async def test_b23_taking_one_of_60_000_pending_jobs_is_as_much_work_as_taking_one_of_100(
        self, store: Store, clock: Clock, server: "Redis"
    ) -> None:
        ledger = Ledger(store, clock)
        await ledger.open(slots=0, max_per_submitter=100_000)
        await self.fill(store, range(100))
        await self.cost(ledger, server, "warm")
        few = await self.cost(ledger, server, "few")
        await self.fill(store, range(100, 60_000))
        many = await self.cost(ledger, server, "many")
        assert (await store.status()).counts["pending"] == 60_000 - 3
        assert many <= few

    @staticmethod
    async def fill(store: Store, numbers: range) -> None:
        for first in range(numbers.start, numbers.stop, 5_000):
            some = range(first, min(first + 5_000, numbers.stop))
            await store.put([Order(f"j{n}", U1, "stage:estimating", b"") for n in some])
