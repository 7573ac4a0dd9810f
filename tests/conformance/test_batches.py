"""Batches: what may come in, how they follow their jobs, and when they go."""

import pytest

from maitred.core.batch import BatchOrder, BatchState
from maitred.core.job import Finish, Order
from maitred.core.settings import DAY, SECOND
from maitred.errors import BatchReporting, BatchSealed, BatchUnfinished, IllegalMove, LockLost, OtherSubmitter
from tests.conformance.ledger import OTHER_TOKEN, TOKEN, Ledger, needs
from tests.conformance.party import U1, U2


async def reported(ledger: Ledger, *jobs: str) -> str:
    """Make a batch, let its jobs fail, and report it."""
    batch = await ledger.batch_of("", *jobs, sealed=True)
    for job in jobs:
        await ledger.fail(job)
    await ledger.report(batch)
    return batch


# ------------------------------------------------------------------- what may come in


async def test_a_batch_begins_with_its_first_job(ledger: Ledger) -> None:
    await ledger.open()
    batch = await ledger.batch_of("a")
    assert (await ledger.batch(batch)).state is BatchState.PENDING
    await ledger.put("j", batch=batch)
    assert (await ledger.batch(batch)).state is BatchState.PROCESSING


async def test_nothing_comes_into_a_sealed_batch_and_it_is_sealed_once(ledger: Ledger) -> None:
    await ledger.open()
    batch = await ledger.batch_of("a", "j", sealed=True)
    assert await ledger.put("k", batch=batch) == "sealed"
    with pytest.raises(BatchSealed):
        await ledger.store.seal_batch(batch)
    assert await ledger.store.read(["k"]) == [None]


async def test_expansion_passes_over_a_key_that_the_batch_has(ledger: Ledger) -> None:
    await ledger.open()
    batch = await ledger.batch_of("a", "j", "k", "gone")
    await ledger.store.remove("gone")
    await ledger.complete("k")
    before = await ledger.store.snapshot()
    for job in ("j", "k", "gone"):
        assert await ledger.put(job, batch=batch, only_new=True, body=b"other") == "known"
    assert await ledger.store.snapshot() == before


async def test_a_key_that_is_unended_elsewhere_is_refused_and_an_ended_one_comes_in(ledger: Ledger) -> None:
    await ledger.open()
    other = await ledger.batch_of("a", "theirs")
    await ledger.put("alone")
    batch = await ledger.batch_of("b")
    for job in ("theirs", "alone"):
        assert await ledger.put(job, batch=batch, only_new=True) == "other-batch"
        assert await ledger.put(job, batch=batch) == "other-batch"
    await ledger.complete("alone")
    assert await ledger.put("alone", batch=batch, only_new=True) == "created"
    assert [row.id for row in await ledger.rows(batch)] == ["alone"]
    assert [row.id for row in await ledger.rows(other)] == ["theirs"]


async def test_a_key_of_another_submitter_is_refused(ledger: Ledger) -> None:
    await ledger.open()
    await ledger.put("j", U2)
    batch = await ledger.batch_of("a")
    assert await ledger.put("j", U1, batch=batch) == "other-submitter"


async def test_an_external_id_belongs_to_its_submitter(ledger: Ledger) -> None:
    await ledger.open()
    await ledger.batch_of("a")
    with pytest.raises(OtherSubmitter):
        await ledger.store.create_batch(BatchOrder("a", U2, "", b"", expanding=False, sealed=True))


async def test_whoever_lost_the_lock_can_write_no_more(ledger: Ledger) -> None:
    await ledger.open(slots=0, lease=15 * SECOND)
    batch = await ledger.batch_of("a", expanding=True)
    await ledger.store.lock_batch("first", TOKEN)
    assert await ledger.put("j", batch=batch, token=TOKEN, only_new=True) == "created"
    await ledger.tick(16)
    await ledger.store.lock_batch("second", OTHER_TOKEN)
    assert await ledger.put("k", batch=batch, token=TOKEN, only_new=True) == "lock-lost"
    for refused in (
        ledger.store.seal_batch(batch, token=TOKEN),
        ledger.store.keep_batch(batch, TOKEN),
        ledger.store.mark_rows(batch, TOKEN, [("j", "failed")]),
        ledger.store.report_batch(batch, TOKEN, b"", send=True),
        ledger.store.sent_batch(batch, TOKEN, None),
    ):
        with pytest.raises(LockLost):
            await refused
    await ledger.store.unlock_batch(batch, TOKEN)
    assert (await ledger.batch(batch)).owner == "second"
    await ledger.store.seal_batch(batch, token=OTHER_TOKEN)


async def test_a_batch_that_is_being_expanded_is_sealed_after_that(ledger: Ledger) -> None:
    await ledger.open()
    batch = await ledger.batch_of("a", expanding=True)
    await ledger.store.lock_batch("clerk", TOKEN)
    await ledger.store.seal_batch(batch)
    assert not (await ledger.batch(batch)).sealed
    assert await ledger.put("j", batch=batch, token=TOKEN, only_new=True) == "created"
    await ledger.store.seal_batch(batch, token=TOKEN)
    assert (await ledger.batch(batch)).sealed


# ------------------------------------------------------------------- following its jobs


async def test_a_batch_without_jobs_is_completed(ledger: Ledger) -> None:
    await ledger.open()
    batch = await ledger.batch_of("a", sealed=True)
    assert await ledger.report(batch) == (BatchState.COMPLETED, [])


async def test_a_batch_that_could_not_be_expanded_has_failed_and_says_why(ledger: Ledger) -> None:
    await ledger.open()
    batch = await ledger.batch_of("a", expanding=True)
    await ledger.store.lock_batch("clerk", TOKEN)
    await ledger.store.seal_batch(batch, token=TOKEN, fault="line 3: no digest")
    await ledger.store.unlock_batch(batch, TOKEN)
    assert (await ledger.report(batch))[0] is BatchState.FAILED
    assert (await ledger.batch(batch)).fault == "line 3: no digest"


async def test_a_deleted_job_is_named_as_deleted_and_does_not_fail_its_batch(ledger: Ledger) -> None:
    await ledger.open()
    batch = await ledger.batch_of("a", "j", "k", sealed=True)
    await ledger.complete("j")
    await ledger.store.remove("k")
    assert await ledger.counts(batch) == {"completed": 1, "deleted": 1}
    state, told = await ledger.report(batch)
    assert state is BatchState.COMPLETED
    assert [(row.id, row.label, row.state) for row in told] == [
        ("j", b"j", "completed"),
        ("k", b"k", "deleted"),
    ]


async def test_a_new_version_before_the_report_stays_in_the_batch_and_is_what_its_row_tells(
    ledger: Ledger,
) -> None:
    await ledger.open()
    batch = await ledger.batch_of("a", "j", "k", sealed=True)
    await ledger.fail("j")
    assert await ledger.put("j", body=b"better") == "created"
    assert (await ledger.job("j")).batch == batch
    assert [row.state for row in await ledger.rows(batch)] == ["estimating", "estimating"]
    await ledger.complete("j")
    await ledger.complete("k")
    _, told = await ledger.report(batch)
    assert [(row.id, row.label, row.state) for row in told] == [
        ("j", b"j", "completed"),
        ("k", b"k", "completed"),
    ]


async def test_a_batch_counts_a_job_once_by_its_newest_version(ledger: Ledger) -> None:
    await ledger.open()
    batch = await ledger.batch_of("a", "j", "k", sealed=True)
    await ledger.fail("j")
    await ledger.put("j", body=b"better")
    assert await ledger.counts(batch) == {"processing": 2}
    assert await ledger.put("k", body=b"better") == "next-version"
    assert await ledger.counts(batch) == {"processing": 2}
    older = ledger.runs["k"][1]
    await ledger.complete("j")
    assert await ledger.counts(batch) == {"completed": 1, "processing": 1}
    await ledger.complete("k")
    assert ledger.runs == {}
    assert older.version == 2
    assert (await ledger.report(batch))[0] is BatchState.COMPLETED


async def test_a_batch_waits_for_no_version_that_was_replaced(ledger: Ledger) -> None:
    await ledger.open(slots=0)
    batch = await ledger.batch_of("a", "j", sealed=True)
    await ledger.join("w", 1)
    older = ledger.runs["j"]
    assert await ledger.put("j", expires_at=ledger.clock.now + SECOND) == "next-version"
    assert await ledger.counts(batch) == {"pending": 1}
    await ledger.tick(2)
    state, told = await ledger.report(batch)
    assert (state, [row.state for row in told]) == ("failed", ["failed"])
    ledger.runs["j"] = older
    await ledger.done("j", 6)
    assert await ledger.counts(batch) == {"failed": 1}
    await ledger.store.remove_batch(batch)
    assert await ledger.store.read(["j"]) == [None]


async def test_after_the_report_a_put_starts_outside_the_batch(ledger: Ledger) -> None:
    await ledger.open()
    batch = await reported(ledger, "j")
    assert await ledger.put("j") == "created"
    job = await ledger.job("j")
    assert (job.batch, job.version) == ("", 2)
    assert [row.state for row in await ledger.rows(batch)] == ["failed"]
    await ledger.complete("j")
    assert await ledger.counts(batch) == {"failed": 1}


# ------------------------------------------------------------------- reports


async def test_while_its_report_is_made_jobs_cannot_be_retried_deleted_or_put(ledger: Ledger) -> None:
    await ledger.open()
    batch = await ledger.batch_of("a", "j", sealed=True)
    await ledger.fail("j")
    before = await ledger.store.snapshot()
    with pytest.raises(BatchReporting):
        await ledger.retry("j")
    with pytest.raises(BatchReporting):
        await ledger.store.remove("j")
    with pytest.raises(BatchReporting):
        await ledger.store.remove_batch(batch)
    with pytest.raises(IllegalMove):
        await ledger.hold("batch", batch)
    assert await ledger.put("j") == "reporting"
    assert await ledger.store.snapshot() == before
    await ledger.report(batch)
    await ledger.retry("j")
    assert await ledger.state("j") == "estimating"


async def test_an_update_report_waits_for_unfinished_jobs_and_then_freezes_them_too(ledger: Ledger) -> None:
    await ledger.open()
    batch = await reported(ledger, "j", "k")
    await ledger.retry("j")
    await ledger.store.update_batch(batch)
    assert (await ledger.batch(batch)).state is BatchState.UPDATE_REPORTING
    assert await ledger.store.lock_batch("clerk", TOKEN) is None
    await ledger.retry("k")
    await ledger.complete("j")
    await ledger.fail("k", "another message")
    with pytest.raises(BatchReporting):
        await ledger.retry("k")
    state, changed = await ledger.report(batch)
    assert (state, [row.id for row in changed]) == ("failed", ["j"])


async def test_an_update_report_names_a_job_that_was_deleted_since(ledger: Ledger) -> None:
    await ledger.open()
    batch = await reported(ledger, "j", "k")
    await ledger.store.remove("j")
    await ledger.retry("k")
    await ledger.complete("k")
    await ledger.store.update_batch(batch)
    state, changed = await ledger.report(batch)
    assert state is BatchState.COMPLETED
    assert [(row.id, row.state, row.reported) for row in changed] == [
        ("j", "deleted", "failed"),
        ("k", "completed", "failed"),
    ]


async def test_a_report_cannot_be_stored_before_the_batch_is_reported(ledger: Ledger) -> None:
    await ledger.open()
    batch = await ledger.batch_of("a", "j", expanding=True)
    await ledger.store.lock_batch("clerk", TOKEN)
    with pytest.raises(IllegalMove):
        await ledger.store.report_batch(batch, TOKEN, b"early", send=True)
    assert (await ledger.batch(batch)).sequence == 0


async def test_only_a_failed_batch_has_an_update_report(ledger: Ledger) -> None:
    await ledger.open()
    batch = await ledger.batch_of("a", sealed=True)
    await ledger.report(batch)
    with pytest.raises(IllegalMove):
        await ledger.store.update_batch(batch)


async def test_a_report_that_could_not_be_sent_is_tried_again_when_it_is_due(ledger: Ledger) -> None:
    await ledger.open()
    batch = await ledger.batch_of("a", sealed=True)
    await ledger.store.lock_batch("clerk", TOKEN)
    await ledger.store.report_batch(batch, TOKEN, b"report", send=True)
    await ledger.store.sent_batch(batch, TOKEN, 30 * SECOND)
    await ledger.store.unlock_batch(batch, TOKEN)
    assert await ledger.store.lock_batch("clerk", TOKEN) is None
    await ledger.tick(30)
    errand = await ledger.store.lock_batch("clerk", TOKEN)
    assert errand
    assert (errand.work, errand.batch.tries, errand.batch.report) == ("send", 1, b"report")
    await ledger.store.sent_batch(batch, TOKEN, None)
    await ledger.store.unlock_batch(batch, TOKEN)
    assert await ledger.store.lock_batch("clerk", TOKEN) is None


async def test_batches_are_listed_newest_first_page_by_page_and_by_state(ledger: Ledger) -> None:
    await ledger.open()
    made = [await ledger.batch_of(f"x{n}") for n in range(7)]
    await ledger.hold("batch", made[2])
    seen, cursor = [], None
    while True:
        page = await ledger.store.batches(cursor=cursor, limit=3)
        seen += [batch.id for batch in page.batches]
        cursor = page.next
        if cursor is None:
            break
    assert seen == made[::-1]
    assert [batch.id for batch in (await ledger.store.batches(state="held")).batches] == [made[2]]


# ------------------------------------------------------------------- limits, size and age


async def test_exempt_jobs_do_not_count_against_their_submitter(ledger: Ledger) -> None:
    await ledger.open(slots=0, max_per_submitter=2)
    batch = await ledger.batch_of("a", "e1", "e2", "e3", exempt=True)
    assert await ledger.put("a") == "created"
    assert await ledger.put("b") == "created"
    assert await ledger.put("c") == "full-per_submitter"
    assert await ledger.put("c", batch=batch) == "full-per_submitter"
    assert await ledger.put("e4", batch=batch, exempt=True) == "created"
    await ledger.store.remove("a")
    assert await ledger.put("c") == "created"
    await ledger.store.cancel("e1", "")
    assert await ledger.put("d") == "full-per_submitter"


async def test_exempt_jobs_neither_wait_by_the_delay_policy_nor_count_for_it(ledger: Ledger) -> None:
    await ledger.open(slots=0, per_recent=60 * SECOND)
    await ledger.batch_of("a", "e1", "e2", exempt=True)
    await ledger.put("first")
    await ledger.put("second")
    delays = [(await ledger.job(id)).delay / SECOND for id in ("e1", "e2", "first", "second")]
    assert delays == [0, 0, 0, 60]


async def test_no_batch_is_exempt_from_the_limit_of_the_queue(ledger: Ledger) -> None:
    await ledger.open(slots=0, max_total=2)
    batch = await ledger.batch_of("a", "e1", "e2", exempt=True)
    assert await ledger.put("e3", batch=batch, exempt=True) == "full-total"
    assert [row.id for row in await ledger.rows(batch)] == ["e1", "e2"]


async def test_a_batch_of_2_000_jobs_is_counted_and_reported_whole(ledger: Ledger) -> None:
    await ledger.open(slots=0, stages=("one", "two"), order="oldest-first", max_total=100_000)
    batch = await ledger.batch_of("a")
    jobs = [f"{batch}/{n}" for n in range(1, 2_001)]
    for first in range(0, 2_000, 500):
        some = jobs[first : first + 500]
        await ledger.store.put([Order(id, U1, "stage:one", b"", batch=batch, exempt=True) for id in some])
    await ledger.store.seal_batch(batch)
    assert await ledger.counts(batch) == {"pending": 2_000}
    shift = await ledger.store.join("w", 1_000, needs("one", "two"))
    while shift.starts:
        results = [Finish(start.lease, "error" if start.id.endswith("77") else "") for start in shift.starts]
        shift = await ledger.store.finish("w", results)
    assert await ledger.counts(batch) == {"completed": 1_980, "failed": 20}
    state, told = await ledger.report(batch)
    assert state is BatchState.FAILED
    assert [row.id for row in told] == jobs
    assert {row.id for row in told if row.state == "failed"} == {id for id in jobs if id.endswith("77")}


async def test_a_large_batch_is_unknown_at_once_and_its_jobs_go_with_the_ticks(ledger: Ledger) -> None:
    await ledger.open(slots=0)
    batch = await ledger.batch_of("a")
    jobs = [f"j{n}" for n in range(450)]
    await ledger.store.put([Order(id, U1, "stage:estimating", b"", batch=batch) for id in jobs])
    for id in jobs:
        await ledger.store.cancel(id, "")
    await ledger.store.seal_batch(batch)
    await ledger.report(batch)
    await ledger.store.remove_batch(batch)
    assert await ledger.store.batch(batch) is None
    left = len((await ledger.store.snapshot()).jobs)
    assert 0 < left < 450
    assert (await ledger.store.tick()).next_at == ledger.clock.now or left <= 200
    for _ in range(3):
        await ledger.tick()
    kept = await ledger.store.snapshot()
    assert (kept.jobs, kept.trash, kept.newest) == ({}, {}, {})


async def test_a_job_of_a_deleted_batch_that_is_put_again_stays(ledger: Ledger) -> None:
    await ledger.open(slots=1)
    batch = await reported(ledger, "j")
    await ledger.put("j", body=b"again")
    await ledger.store.remove_batch(batch)
    job = await ledger.job("j")
    assert (job.body, job.version, job.batch) == (b"again", 2, "")
    assert await ledger.store.read(["j"], version=1) == [None]


async def test_a_batch_with_a_job_that_was_retried_cannot_be_deleted_until_that_ends(ledger: Ledger) -> None:
    await ledger.open()
    batch = await reported(ledger, "j")
    await ledger.retry("j")
    with pytest.raises(BatchUnfinished):
        await ledger.store.remove_batch(batch)
    await ledger.fail("j")
    await ledger.store.remove_batch(batch)
    assert await ledger.store.read(["j"]) == [None]


async def test_the_jobs_of_a_batch_are_kept_as_long_as_the_batch_and_go_with_it(ledger: Ledger) -> None:
    await ledger.open(lease=400 * DAY, retention=7 * DAY)
    batch = await ledger.batch_of("a", "early", "late")
    await ledger.put("alone")
    for id in ("early", "alone"):
        await ledger.complete(id)
    await ledger.tick(8 * DAY / SECOND)
    assert await ledger.store.read(["alone"]) == [None]
    assert await ledger.state("early") == "completed"
    await ledger.complete("late")
    await ledger.tick(8 * DAY / SECOND)
    await ledger.report(batch)
    await ledger.tick(6 * DAY / SECOND)
    assert await ledger.state("early") == "completed"
    await ledger.tick(2 * DAY / SECOND)
    assert await ledger.store.batch(batch) is None
    await ledger.tick()
    assert await ledger.store.read(["early", "late"]) == [None, None]


async def test_a_batch_that_was_left_open_for_the_retention_is_sealed(ledger: Ledger) -> None:
    await ledger.open(slots=0, retention=7 * DAY)
    batch = await ledger.batch_of("a", "j")
    await ledger.tick(6 * DAY / SECOND)
    await ledger.put("k", batch=batch)
    await ledger.tick(6 * DAY / SECOND)
    assert not (await ledger.batch(batch)).sealed
    await ledger.tick(DAY / SECOND)
    shown = await ledger.batch(batch)
    assert (shown.sealed, shown.state) == (True, "processing")
    assert await ledger.line() == ["j", "k"] or await ledger.line() == ["k", "j"]


async def test_a_batch_whose_report_was_not_sent_is_not_forgotten(ledger: Ledger) -> None:
    await ledger.open(slots=0, retention=7 * DAY)
    batch = await ledger.batch_of("a", sealed=True)
    await ledger.store.lock_batch("clerk", TOKEN)
    await ledger.store.report_batch(batch, TOKEN, b"report", send=True)
    await ledger.store.unlock_batch(batch, TOKEN)
    await ledger.tick(30 * DAY / SECOND)
    assert await ledger.store.batch(batch)
