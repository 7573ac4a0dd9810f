"""Stages: how a job goes from one to the next, and how often each is tried."""

import pytest

from maitred.core.job import Band, Phase
from maitred.core.reason import waiting_for
from maitred.core.settings import SECOND
from maitred.errors import NotFailed, UnknownJob
from tests.conformance.ledger import Ledger
from tests.conformance.party import U1, U2, U7


async def test_a_worker_carries_a_job_through_the_stages_that_it_serves(ledger: Ledger) -> None:
    await ledger.open(slots=0)
    await ledger.join("half", 1, ["estimating", "provisioning"])
    await ledger.put("j")
    await ledger.done("j")
    assert (ledger.runs["j"][0], ledger.runs["j"][1].need) == ("half", "stage:provisioning")
    await ledger.done("j")
    assert "j" not in ledger.runs
    await ledger.join("rest", 1, ["downloading", "processing", "recording", "notify"])
    await ledger.complete("j")
    job = await ledger.job("j")
    assert await ledger.state("j") == "completed"
    assert [(run.stage, run.worker, run.attempt, run.version) for run in job.timeline] == [
        (1, "half", 1, 1),
        (2, "half", 1, 1),
        (3, "rest", 1, 1),
        (4, "rest", 1, 1),
        (5, "rest", 1, 1),
        (6, "rest", 1, 1),
    ]


async def test_each_stage_has_a_lease_of_its_own(ledger: Ledger) -> None:
    await ledger.open()
    await ledger.put("j")
    first = ledger.lease("j")
    await ledger.done("j")
    assert ledger.lease("j") != first


async def test_a_job_whose_next_stage_nobody_serves_blocks_nobody(ledger: Ledger) -> None:
    await ledger.open(slots=0)
    await ledger.join("w", 1, ["estimating"])
    await ledger.put("j")
    await ledger.put("k", U2)
    await ledger.done("j")
    assert list(ledger.runs) == ["k"]
    view = await ledger.view("j")
    assert (view.serving, await ledger.state("j")) == (0, "provisioning")


@pytest.mark.parametrize("band", [Band.IMMEDIATE, Band.SCHEDULED, Band.BULK])
async def test_between_stages_a_job_keeps_its_band_release_and_arrival(ledger: Ledger, band: Band) -> None:
    await ledger.open(slots=0)
    await ledger.put("first", band=band)
    before = await ledger.job("first")
    await ledger.tick(1)
    await ledger.put("second", U2, band=band)
    await ledger.join("w", 2, ["estimating"])
    await ledger.done("second")
    await ledger.tick(1)
    await ledger.done("first")
    after = await ledger.job("first")
    assert (after.band, after.release, after.arrival, after.own) == (
        before.band,
        before.release,
        before.arrival,
        True,
    )
    assert await ledger.line() == ["first", "second"]


async def test_a_stage_may_set_priority_identifiers_and_data_for_the_next(ledger: Ledger) -> None:
    await ledger.open(slots=0)
    await ledger.join("w", 2, ["estimating"])
    await ledger.put("j")
    await ledger.put("k", U2)
    await ledger.done("j", priority=9, identifiers=b'{"primary_id":"ark:/1"}', result=b"\x00data\xff")
    await ledger.done("k")
    assert await ledger.line() == ["k", "j"]
    await ledger.join("v", 2)
    start = ledger.runs["j"][1]
    assert (start.data, start.identifiers) == (b"\x00data\xff", b'{"primary_id":"ark:/1"}')


async def test_a_job_between_stages_can_be_put_again_and_goes_on_with_the_new_body(ledger: Ledger) -> None:
    await ledger.open(slots=0)
    await ledger.join("w", 1, ["estimating"])
    await ledger.put("j", body=b"old")
    await ledger.done("j")
    assert await ledger.put("j", body=b"new") == "updated"
    await ledger.join("v", 1, ["provisioning"])
    assert (ledger.runs["j"][1].body, ledger.runs["j"][1].need) == (b"new", "stage:provisioning")


async def test_an_older_version_that_would_wait_between_stages_is_superseded(ledger: Ledger) -> None:
    await ledger.open(slots=0)
    await ledger.join("w", 1, ["estimating"])
    await ledger.put("j")
    assert await ledger.put("j", body=b"new") == "next-version"
    await ledger.done("j")
    [first] = await ledger.store.read(["j"], version=1)
    assert first
    assert first.job.code == "superseded"
    assert ledger.runs["j"][1].version == 2


async def test_a_failed_key_that_is_put_again_starts_afresh(ledger: Ledger) -> None:
    await ledger.open()
    await ledger.put("j")
    await ledger.done("j")
    await ledger.fail("j")
    assert await ledger.put("j") == "created"
    assert (await ledger.state("j"), await ledger.last_success("j")) == ("estimating", None)


async def test_a_transient_failure_waits_twice_as_long_each_time_half_of_it_by_the_dice(
    ledger: Ledger,
) -> None:
    await ledger.open(slots=10, backoff=4 * SECOND, most_backoff=10 * SECOND, attempts=5)
    jobs = [f"j{n}" for n in range(10)]
    for id in jobs:
        await ledger.put(id)
    for longest in (4, 8, 10, 10):
        for id in jobs:
            await ledger.fail(id, "the network is down", transient=True)
        waits = [((await ledger.job(id)).release - ledger.clock.now) / SECOND for id in jobs]
        assert all(longest / 2 <= wait <= longest for wait in waits)
        assert len(set(waits)) > 1
        assert ledger.runs == {}
        assert (await ledger.job("j0")).message == "the network is down"
        await ledger.tick(longest)
    assert ledger.runs.keys() == set(jobs)


async def test_transient_failures_are_bounded_by_the_attempts_of_a_stage(ledger: Ledger) -> None:
    await ledger.open(attempts=2)
    await ledger.put("j")
    await ledger.fail("j", transient=True)
    await ledger.tick(300)
    assert ledger.runs["j"][1].attempt == 2
    await ledger.done("j")
    assert ledger.runs["j"][1].attempt == 1
    for _ in range(2):
        assert await ledger.state("j") == "provisioning"
        await ledger.fail("j", "still no", transient=True)
        await ledger.tick(300)
    job = await ledger.job("j")
    assert (await ledger.state("j"), job.code, job.message) == ("failed", "error", "still no")
    assert await ledger.last_success("j") == "estimating"
    await ledger.retry("j")
    assert (ledger.runs["j"][1].attempt, (await ledger.job("j")).retries) == (1, 1)


async def test_a_failure_that_is_not_transient_is_not_tried_again(ledger: Ledger) -> None:
    await ledger.open()
    await ledger.put("j")
    await ledger.fail("j")
    await ledger.tick(600)
    assert await ledger.state("j") == "failed"


async def test_a_front_job_that_backs_off_waits_with_the_scheduled_ones(ledger: Ledger) -> None:
    await ledger.open(slots=0)
    await ledger.put("j")
    await ledger.store.release("j")
    await ledger.join("w")
    await ledger.fail("j", transient=True)
    job = await ledger.job("j")
    assert (job.band, job.phase) == (Band.SCHEDULED, Phase.WAITING)
    reason = waiting_for(await ledger.view("j"), (await ledger.store.status()).settings)
    assert reason
    assert reason.code == "due"
    assert reason.text.startswith("tried again in")


async def test_lost_leases_are_tried_again_at_once_up_to_the_attempts(ledger: Ledger) -> None:
    await ledger.open(slots=0, lease=15 * SECOND, attempts=2)
    await ledger.put("j")
    for name in ("w1", "w2"):
        await ledger.join(name)
        await ledger.store.renew(name, [ledger.lease("j")])
        await ledger.tick(16)
    job = await ledger.job("j")
    assert (await ledger.state("j"), job.code) == ("failed", "attempts")
    assert [run.code for run in job.timeline] == ["lost", "lost"]


async def test_a_job_that_was_handed_back_has_spent_no_attempt(ledger: Ledger) -> None:
    await ledger.open()
    await ledger.put("j")
    await ledger.done("j")
    shift = await ledger.store.hand_back("w", [ledger.lease("j")])
    [start] = shift.starts
    assert (start.attempt, start.need) == (1, "stage:provisioning")


async def test_a_retried_front_job_is_scheduled_now_and_bulk_stays_bulk(ledger: Ledger) -> None:
    await ledger.open(slots=0)
    await ledger.put("front", U1)
    await ledger.put("bulk", U2, band=Band.BULK)
    await ledger.put("now", U7, band=Band.IMMEDIATE)
    await ledger.store.release("front")
    await ledger.join("w", 3)
    await ledger.tick(5)
    await ledger.store.pause("ann", "")
    for id in ("front", "bulk", "now"):
        await ledger.fail(id)
        await ledger.retry(id)
    jobs = [await ledger.job(id) for id in ("front", "bulk", "now")]
    assert [job.band for job in jobs] == [Band.SCHEDULED, Band.BULK, Band.IMMEDIATE]
    assert [job.release for job in jobs] == [ledger.clock.now] * 3
    assert await ledger.line() == ["now", "front", "bulk"]


async def test_only_a_failed_job_can_be_retried(ledger: Ledger) -> None:
    await ledger.open()
    await ledger.put("j")
    with pytest.raises(NotFailed):
        await ledger.retry("j")
    await ledger.complete("j")
    with pytest.raises(NotFailed):
        await ledger.retry("j")
    with pytest.raises(UnknownJob):
        await ledger.retry("nobody")


async def test_an_expired_job_that_is_retried_does_not_expire_again(ledger: Ledger) -> None:
    await ledger.open(slots=0)
    await ledger.put("j", expires_at=ledger.clock.now + SECOND)
    await ledger.tick(2)
    assert (await ledger.job("j")).code == "expired"
    await ledger.retry("j")
    assert await ledger.state("j") == "pending"


async def test_a_queue_without_stages_retries_and_holds_as_one_stage(ledger: Ledger) -> None:
    await ledger.open(slots=0, stages=("processing",))
    ledger.workers.append("w")
    await ledger.store.join("w", 1, ["handler:a"])
    await ledger.put("j")
    await ledger.fail("j")
    await ledger.retry("j")
    assert (await ledger.state("j"), await ledger.last_success("j")) == ("processing", None)
    await ledger.done("j", result=b"42")
    assert (await ledger.state("j"), (await ledger.job("j")).result) == ("completed", b"42")
    assert await ledger.last_success("j") == "processing"
