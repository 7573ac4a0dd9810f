"""Holds, retries and batches as Python programs use them, on every store."""

import asyncio
import inspect

import pytest

import maitred
from maitred.core.job import Finish
from maitred.core.settings import MINUTE, Settings
from maitred.service.clerk import Clerk
from maitred.service.queue import Queue
from maitred.service.sync import SyncQueue
from maitred.store.memory import MemoryStores
from maitred.store.port import Store, Stores
from tests.service.post import postman

NEED = "handler:grade"
ADA = {"type": "user", "id": "ada"}


@pytest.fixture
async def queue(stores: Stores, store: Store) -> maitred.Queue:
    await store.configure(Settings(lease=60 * MINUTE))
    return maitred.Queue(store.queue, stores)


async def test_a_job_is_held_resumed_prioritised_and_retried(queue: maitred.Queue, store: Store) -> None:
    id = (await queue.put("a", submitter="user:7", handler="grade")).id
    held = await queue.hold(id, "no disk")
    assert (held.state, held.holds[0].by, held.holds[0].reason) == ("held", "program", "no disk")
    assert (await queue.resume(id)).state == "pending"
    with pytest.raises(maitred.NotHeld):
        await queue.resume(id)
    assert (await queue.prioritise(id, 2)).priority == 2
    for wrong in (105, -1):
        with pytest.raises(maitred.InvalidJob):
            await queue.prioritise(id, wrong)
    with pytest.raises(maitred.NotFailed):
        await queue.retry(id)
    [start] = (await store.join("w", 1, [NEED])).starts
    await store.finish("w", [Finish(start.lease, "error", "it broke")])
    assert (await queue.retry(id)).retry_count == 1


async def test_a_submitter_and_a_profile_are_held_and_resumed(queue: maitred.Queue) -> None:
    await queue.put("a", submitter="user:7", handler="grade", profile="nightly")
    assert (await queue.hold_submitter("user:7", "why")).held
    assert not (await queue.resume_submitter(maitred.Submitter("user", "7"))).held
    held = await queue.hold_profile("nightly", "why")
    assert held.hold is not None
    assert held.hold.reason == "why"
    assert not (await queue.resume_profile("nightly")).held


async def test_a_batch_is_submitted_filled_reported_retried_and_removed(
    queue: maitred.Queue, store: Store
) -> None:
    batch = await queue.submit_batch({"submitter": ADA, "external_id": "x", "seal": False})
    assert (batch.outcome, batch.state) == ("created", "pending")
    assert (await queue.submit_batch({"submitter": ADA, "external_id": "x"})).outcome == "known"
    jobs = [{"key": key, "run": {"handler": "grade"}} for key in "ab"]
    first, second = await queue.add_jobs(batch.id, jobs)
    assert isinstance(first, maitred.Accepted)
    assert isinstance(second, maitred.Accepted)
    again = await queue.put("c", submitter="user:9", handler="grade", batch=batch.id)
    assert (again.outcome, (await queue.job(again.id)).batch) == ("created", batch.id)
    [known, wrong] = await queue.add_jobs(batch.id, [*jobs[:1], {"key": 7}])
    assert isinstance(known, maitred.Accepted)
    assert (known.outcome, known.id) == ("known", first.id)
    assert isinstance(wrong, maitred.InvalidJob)
    assert (await queue.hold_batch(batch.id, "why")).state == "held"
    assert (await queue.resume_batch(batch.id)).state == "processing"
    with pytest.raises(maitred.NoReport):
        await queue.report(batch.id)
    assert (await queue.seal_batch(batch.id)).sealed
    with pytest.raises(maitred.BatchSealed):
        await queue.add_jobs(batch.id, jobs)
    shift = await store.join("w", 3, [NEED])
    codes = {first.id: "error"}
    ends = [Finish(start.lease, codes.get(start.id, ""), "it broke") for start in shift.starts]
    await store.finish("w", ends)
    with pytest.raises(maitred.BatchReporting):
        await queue.retry_batch(batch.id)
    await Clerk(store, "clerk", postman()).work_off()
    report = await queue.report(batch.id)
    assert ([row.key for row in report.failed], len(report.completed)) == (["a"], 2)
    assert await queue.retry_batch(batch.id) == 1
    with pytest.raises(maitred.BatchUnfinished):
        await queue.remove_batch(batch.id)
    await queue.cancel(first.id)
    assert (await queue.update_report(batch.id)).state == "update-reporting"
    await Clerk(store, "clerk", postman()).work_off()
    assert [found.id for found in (await queue.batches(state="failed")).items] == [batch.id]
    await queue.remove_batch(batch.id)
    with pytest.raises(maitred.UnknownBatch):
        await queue.batch(batch.id)


async def test_the_same_external_id_at_once_makes_one_batch(queue: maitred.Queue) -> None:
    sent = {"submitter": ADA, "external_id": "once", "seal": False}
    batches = await asyncio.gather(*(queue.submit_batch(sent) for _ in range(10)))
    assert len({batch.id for batch in batches}) == 1
    assert sorted(str(batch.outcome) for batch in batches) == ["created"] + ["known"] * 9
    with pytest.raises(maitred.OtherSubmitter):
        await queue.submit_batch({**sent, "submitter": {"type": "team", "id": "ada"}})


def test_every_coroutine_of_a_queue_has_a_sync_face() -> None:
    coroutines = {
        name for name, method in vars(Queue).items() if inspect.iscoroutinefunction(method) and name[0] != "_"
    }
    assert coroutines <= set(vars(SyncQueue))


def test_a_program_without_a_loop_submits_a_batch() -> None:
    stores = MemoryStores()
    asyncio.run(stores.queue("q").configure(Settings()))
    queue = maitred.Queue("q", stores).sync
    batch = queue.submit_batch({"submitter": ADA, "seal": False})
    assert queue.batch(batch.id).state == "pending"
    assert queue.seal_batch(batch.id).sealed
