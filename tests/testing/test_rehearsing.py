"""Users' programs are tried in memory, on a clock of their own, with everything else as it is on a server."""

from datetime import timedelta

import httpx
import pytest
from fastapi import FastAPI, Response
from pydantic import ValidationError

import maitred
from maitred import testing
from maitred.testing import Clock, Rehearsal, Rehearsals
from maitred.wire import BatchDocument
from tests.testing.program import again, body, q, runs


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    runs.clear()


def test_the_public_names_are_these() -> None:
    assert testing.__all__ == ["Callback", "Clock", "Rehearsal", "Rehearsals"]
    assert hasattr(testing, "rehearse")


async def test_nothing_runs_before_it_is_asked_for_and_the_result_is_there_afterwards(
    rehearse: Rehearsals,
) -> None:
    rehearsal = rehearse(q)
    put = await q.put("quiz", submitter="user:ada", handler="mean", args={"points": [1, 2, 6]})
    job = await rehearsal.waiting(put.id, "no-worker")
    assert (job.position, runs) == (1, [])
    await rehearsal.run_until_idle()
    assert await rehearsal.completed(put.id) == 3.0


async def test_jobs_run_one_after_the_other_in_the_order_of_the_line(rehearse: Rehearsals) -> None:
    rehearsal = rehearse(q)
    for key in ("one", "two", "three"):
        await rehearsal.submit(body(key))
    await rehearsal.submit(body("urgent", who="bob", immediate=True))
    await rehearsal.run_until_idle()
    assert [key for key, _ in runs] == ["urgent", "three", "two", "one"]


async def test_delays_and_back_offs_pass_without_waiting(rehearse: Rehearsals) -> None:
    rehearsal = rehearse(q)
    began = rehearsal.clock.now
    late = await rehearsal.submit(body("late", delay=86_400))
    hard = await rehearsal.submit(body("hard", "flaky", args={"until": 3}))
    await rehearsal.run_until_idle()
    assert await rehearsal.completed(hard.id) == "attempt 3"
    assert runs == [("hard", 1), ("hard", 2), ("hard", 3), ("late", 1)]
    assert rehearsal.clock.now - began == timedelta(days=1)
    assert (await rehearsal.job(late.id)).timeline[0].start == rehearsal.clock.now


async def test_what_is_not_due_waits_until_the_clock_is_moved(rehearse: Rehearsals) -> None:
    rehearsal = rehearse(q)
    job = await rehearsal.submit(body("late", delay=60))
    await rehearsal.run_due()
    await rehearsal.waiting(job.id, "due")
    rehearse.clock.advance(59.9)
    await rehearsal.run_due()
    await rehearsal.waiting(job.id)
    rehearse.clock.advance(timedelta(milliseconds=100))
    await rehearsal.run_due()
    await rehearsal.completed(job.id)
    with pytest.raises(ValueError, match="forward"):
        rehearse.clock.advance(-1)


async def test_attempts_end_as_the_settings_say(rehearse: Rehearsals) -> None:
    rehearsal = rehearse(q, attempts=2)
    job = await rehearsal.submit(body("hard", "flaky", args={"until": 3}))
    await rehearsal.run_until_idle()
    failed = await rehearsal.failed(job.id, "error")
    assert (failed.message, failed.attempt) == ("Transient: not yet", 2)
    with pytest.raises(ValidationError):
        rehearse(q, attempts=0)


async def test_what_handlers_submit_runs_too(rehearse: Rehearsals) -> None:
    rehearsal = rehearse(q)
    await rehearsal.submit(body("chain-4", "chain", args={"length": 3}))
    await rehearsal.run_until_idle()
    assert (await q.desk.queue("default"))["counts"]["completed"] == 4


async def test_a_job_without_a_handler_is_left_waiting_and_a_claim_about_it_tells_so(
    rehearse: Rehearsals,
) -> None:
    rehearsal = rehearse(q)
    job = await rehearsal.submit(body("odd", "unknown"))
    await rehearsal.run_until_idle()
    with pytest.raises(AssertionError, match="odd is not completed: pending, waiting, no worker serves"):
        await rehearsal.completed(job.id)
    with pytest.raises(AssertionError, match="odd has not failed with error: pending"):
        await rehearsal.failed(job.id, "error")
    with pytest.raises(AssertionError, match="odd does not wait for due: pending"):
        await rehearsal.waiting(job.id, "due")
    # Now that a worker has been there it is known that nobody serves this.
    with pytest.raises(maitred.InvalidJob):
        await rehearsal.submit(body("odd-2", "unknown"))


async def test_what_has_no_end_is_told_of(rehearse: Rehearsals, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maitred.testing.rehearsal.MOST_MOMENTS", 10)
    rehearsal = rehearse(again)
    await rehearsal.submit(body("n", "again", args={"number": 1}))
    with pytest.raises(AssertionError, match="not idle after 10 moments"):
        await rehearsal.run_until_idle()


async def test_a_mistake_in_a_body_is_refused_as_by_a_server(rehearse: Rehearsals) -> None:
    rehearsal = rehearse(q)
    with pytest.raises(maitred.InvalidJob) as refused:
        await rehearsal.submit({"key": "", "priority": 500})
    assert {fault.path for fault in refused.value.faults} == {"key", "submitter", "run", "priority"}
    good, bad = await rehearsal.submit_many([body("good"), {"key": "bad"}])
    assert not isinstance(good, maitred.MaitredError)
    assert isinstance(bad, maitred.InvalidJob)


async def test_callbacks_are_signed_and_kept_and_leave_the_process_for_nobody(rehearse: Rehearsals) -> None:
    rehearsal = rehearse(q)
    await rehearsal.submit(body("told", response_url="https://lms.invalid/done"))
    await rehearsal.run_until_idle()
    started, ended = rehearsal.callbacks
    assert started.message["type"] == "job.started"
    assert (ended.url, ended.message["data"]["result"]) == ("https://lms.invalid/done", 3.0)
    assert maitred.webhooks.verify(await rehearsal.secret(), ended.headers, ended.body)


async def test_a_callback_that_is_not_taken_is_sent_again_later(rehearse: Rehearsals) -> None:
    answers = iter([503, 503, 204, 204])
    app = FastAPI()
    app.post("/done")(lambda: Response(status_code=next(answers)))
    rehearsal = rehearse(q, receiver=httpx.ASGITransport(app))
    job = await rehearsal.submit(body("told", response_url="https://lms.invalid/done"))
    await rehearsal.run_until_idle()
    kinds = [callback.message["type"] for callback in rehearsal.callbacks]
    assert kinds == ["job.started", "job.started", "job.started", "job.ended"]
    assert [each.answer for each in await q.deliveries(job.id)] == ["again", "again", "sent", "sent"]


async def test_a_batch_is_expanded_run_and_reported(rehearse: Rehearsals) -> None:
    rehearsal = rehearse(q)
    batch: BatchDocument = await q.submit_batch(
        {"submitter": {"type": "user", "id": "ada"}, "jobs": [body("b-1"), body("b-2", "flaky", args={})]}
    )
    await rehearsal.run_until_idle()
    report = await q.report(batch.id)
    assert ([row.key for row in report.completed], [row.key for row in report.failed]) == (["b-1"], ["b-2"])


async def test_stages_are_gone_through(rehearse: Rehearsals) -> None:
    ingest = maitred.Queue("ingest")
    ingest.stage("fetching")(lambda job: {"size": len(job.args["url"])})
    ingest.stage("recording")(lambda job: job.data)
    rehearsal = rehearse(ingest, stages=["fetching", "recording"])
    job = await rehearsal.submit(
        {"key": "o-1", "submitter": {"type": "user", "id": "ada"}, "run": {"args": {"url": "12345"}}}
    )
    await rehearsal.run_until_idle()
    assert await rehearsal.completed(job.id) == {"size": 5}


async def test_a_worker_that_cannot_work_says_why(rehearse: Rehearsals) -> None:
    odd = maitred.Queue("odd")
    odd.stage("fetching")(lambda job: job.args)
    with pytest.raises(maitred.ConfigError, match="no stages of its own"):
        await rehearse(odd).run_due()


async def test_programs_that_call_a_server_reach_the_same_queue(rehearse: Rehearsals) -> None:
    rehearsal = rehearse(q)
    async with rehearsal.client() as client:
        job = await client.put("default", body("over-http"))
        await rehearsal.run_until_idle()
        assert (await client.job("default", job.id)).result == 3.0


def test_a_test_without_a_loop_has_the_same(rehearse: Rehearsals) -> None:
    rehearsal = rehearse(q)
    put = q.sync.put("quiz", submitter="user:ada", handler="mean", args={"points": [4]})
    rehearsal.sync.run_until_idle()
    assert rehearsal.sync.completed(put.id) == 4.0
    assert q.sync.job(put.id).state == "completed"


def test_a_queue_has_its_own_store_back_afterwards() -> None:
    with Rehearsal(q, clock=Clock()) as first:
        q.sync.put("quiz", submitter="user:ada", handler="mean", args={"points": [4]})
        with Rehearsal(q) as second:
            assert q.sync.line().total == 0
            second.sync.run_due()
        assert q.sync.line().total == 1
        first.sync.run_due()
    assert q.where is None
    assert runs == [("quiz", 1)]
