"""The queue as Python programs use it, on every store."""

import asyncio
from datetime import UTC, datetime

import pytest

import maitred
from maitred.core.settings import Settings
from maitred.service.intake import Accepted
from maitred.store.memory import MemoryStores
from maitred.store.port import Store, Stores
from tests.http.floor import THREE


@pytest.fixture
def queue(stores: Stores, store: Store) -> maitred.Queue:
    return maitred.Queue(store.queue, stores)


async def test_a_job_is_put_read_moved_and_removed(queue: maitred.Queue) -> None:
    put = await queue.put("a", submitter="user:7", handler="grade", args={"n": 1}, metadata={"c": "1"})
    job = await queue.job(put.id)
    assert (put.outcome, put.version, job.position, job.run["args"]) == ("created", 1, 1, {"n": 1})
    await queue.put("b", submitter=maitred.Submitter("team", "red"), command=["ls"], priority=9)
    assert [item.key for item in (await queue.line(limit=1)).items] == ["a"]
    assert (await queue.delay(job.id, nonce=job.nonce)).position == 2
    assert (await queue.release(job.id)).band == "front"
    assert (await queue.cancel(job.id, "enough")).message == "cancelled by program: enough"
    await queue.remove(job.id)
    with pytest.raises(maitred.UnknownJob):
        await queue.job(job.id)


async def test_every_setting_of_a_put_arrives(queue: maitred.Queue) -> None:
    until = datetime(2030, 1, 1, tzinfo=UTC)
    put = await queue.put(
        "k",
        submitter="user:7",
        command=["python", "main.py"],
        files={"main.py": {"text": "print(1)"}},
        delay=60,
        priority=1,
        bulk=True,
        response_url="https://example.org/done",
        metadata={"course": "cs101"},
        expires_at=until,
    )
    job = await queue.job(put.id)
    assert job.run == {"command": ["python", "main.py"], "files": ["main.py"], "artifacts": []}
    assert (job.delay, job.priority, job.band, job.expires_at) == (60.0, 1, "bulk", until)
    assert job.response_url == "https://example.org/done"
    now = await queue.put("now", submitter="user:7", handler="grade", immediate=True)
    assert (await queue.job(now.id)).band == "immediate"


async def test_a_class_or_a_duration_is_asked_for_and_made_shorter(
    queue: maitred.Queue, store: Store
) -> None:
    await store.configure(THREE)
    named = await queue.put("a", submitter="user:1", handler="grade", class_="slow")
    timed = await queue.put("b", submitter="user:2", handler="grade", duration=5)
    assert ((await queue.job(named.id)).class_, (await queue.job(timed.id)).class_) == ("slow", "medium")
    for wrong in ({"class_": "quick"}, {"duration": float("nan")}, {"class_": "fast", "duration": 3}):
        with pytest.raises(maitred.InvalidJob, match="slow"):
            await queue.put("c", submitter="user:3", handler="grade", **wrong)
    shorter = await queue.shorten(named.id, 2.5)
    assert (shorter.class_, shorter.duration) == ("fast", 2.5)
    with pytest.raises(maitred.LongerDuration):
        await queue.shorten(named.id, 3)
    with pytest.raises(maitred.LongerDuration):
        await queue.put("a", submitter="user:1", handler="grade", class_="slow")
    for wrong_length in (0, -1, 31, float("nan"), float("inf")):
        with pytest.raises(maitred.InvalidJob, match="at most 30 s"):
            await queue.shorten(named.id, wrong_length)


async def test_faults_are_raised_with_all_their_paths(queue: maitred.Queue, store: Store) -> None:
    before = await store.snapshot()
    with pytest.raises(maitred.InvalidJob) as raised:
        await queue.put("", submitter="user:7", handler="grade", priority=500)
    assert [fault.path for fault in raised.value.faults] == ["key", "priority"]
    for wrong in (
        {"key": "\ud800", "submitter": "user:7", "handler": "grade"},
        {"key": "k", "submitter": "user:\ud800", "handler": "grade"},
        {"key": "k", "submitter": "7", "handler": "grade"},
        {"key": "k", "submitter": "user:7", "handler": "grade", "args": {"x": float("nan")}},
        {"key": "k", "submitter": "user:7", "handler": "grade", "args": {"x": {1, 2}}},
        {"key": "k", "submitter": "user:7", "handler": "grade", "args": {"x": "\ud800"}},
        {"key": "k", "submitter": "user:7", "handler": "grade", "args": {1: 2}},
        {"key": "k", "submitter": "user:7", "command": ["\ud800"]},
        {"key": "k", "submitter": "user:7", "command": ["ls"], "metadata": {"\ud800": "x"}},
        {"key": "k", "submitter": "user:7", "handler": "grade", "class_": "fast"},
        {"key": "k", "submitter": "user:7", "handler": "grade", "duration": float("inf")},
        {"key": "k", "submitter": "user:7"},
        {"key": "k", "submitter": "user:7", "handler": "a", "command": ["b"]},
    ):
        with pytest.raises(maitred.InvalidJob) as raised:
            await queue.put(**wrong)
        assert len(raised.value.faults) == 1, wrong
    assert await store.snapshot() == before


async def test_refusals_are_types_with_facts(queue: maitred.Queue, store: Store) -> None:
    await store.configure(Settings(max_per_submitter=1, max_body=200))
    await queue.put("a", submitter="user:7", handler="grade")
    with pytest.raises(maitred.OtherSubmitter):
        await queue.put("a", submitter="user:8", handler="grade")
    with pytest.raises(maitred.QueueFull) as full:
        await queue.put("b", submitter="user:7", handler="grade")
    assert (full.value.which, full.value.limit) == ("per_submitter", 1)
    with pytest.raises(maitred.TooLarge) as large:
        await queue.put("b", submitter="user:8", handler="grade", args={"x": "x" * 200})
    assert large.value.limit == 200
    with pytest.raises(maitred.UnknownQueue):
        await maitred.Queue("nope", queue.where).put("a", submitter="user:7", handler="grade")


async def test_many_jobs_arrive_in_the_order_of_the_list(queue: maitred.Queue) -> None:
    bodies = [
        {"key": f"k{n}", "submitter": {"type": "user", "id": str(n)}, "run": {"command": ["ls"]}}
        for n in range(300)
    ]
    bodies[7] = {"key": "k7"}
    answers = await queue.put_many(bodies)
    assert len(answers) == 300
    assert isinstance(answers[7], maitred.InvalidJob)
    accepted = [answer for answer in answers if isinstance(answer, Accepted)]
    line = await queue.line(limit=500)
    assert [item.id for item in line.items] == [answer.id for answer in accepted]
    assert [item.key for item in line.items] == [f"k{n}" for n in range(300) if n != 7]


def test_handlers_are_registered_under_names_of_their_own() -> None:
    queue = maitred.Queue("grading")

    @queue.handler("grade")
    async def grade(n: int) -> int:
        return n

    assert dict(queue.handlers) == {"grade": grade}
    with pytest.raises(maitred.ConfigError, match="two handlers"):
        queue.handler("grade")(lambda: None)
    with pytest.raises(maitred.ConfigError, match="not a handler's name"):
        queue.handler("9 lives")(lambda: None)


def test_the_sync_face_does_the_same_and_raises_the_same() -> None:
    stores = MemoryStores()
    asyncio.run(stores.queue("grading").configure(Settings()))
    queue = maitred.Queue("grading", stores).sync
    job = queue.put("a", submitter="user:7", handler="grade")
    assert queue.job(job.id).key == "a"
    assert [item.id for item in queue.line().items] == [job.id]
    with pytest.raises(maitred.UnknownJob):
        queue.release("nobody")
    queue.close()
