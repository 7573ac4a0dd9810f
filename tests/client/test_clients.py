"""The client, async and sync: submit, wait, watch and list, with one implementation."""

import asyncio
import inspect
from collections.abc import Callable
from contextlib import aclosing, closing
from typing import TypeVar

import httpx
import pytest

from maitred.background import Blocking
from maitred.client import Client, SyncClient
from maitred.core.job import Finish, Start
from maitred.core.output import Part
from maitred.core.settings import Settings
from maitred.errors import InvalidJob, JobFailed, MaitredError, UnknownJob
from maitred.http import create_app
from maitred.service.desk import Desk
from maitred.store.memory import MemoryStores
from maitred.wire import JobDocument, JobResultEvent, JobStateEvent, QueueEvent, ResultEvent, StateEvent
from tests.http.guest import body
from tests.http.house import NEED, House

T = TypeVar("T")


def address(house: House) -> str:
    return str(house.guest.http.base_url)


async def serve(house: House, *codes: str) -> None:
    """Let a worker do as many jobs as there are codes; no code is a success."""
    said = (Part("stdout", b"hi"),)
    house.held += (await house.store.join("w", 1, [NEED])).starts
    for code in codes:
        while not house.held:
            house.held += [each for each in await house.store.park("w", 1) if isinstance(each, Start)]
        lease = house.held.pop().lease
        end = Finish(lease, code, "no good" if code else "", result=b"[7]", said=said)
        house.held += (await house.store.finish("w", [end])).starts


def test_the_sync_client_has_every_method_of_the_async_one_with_its_signature() -> None:
    def methods(kind: type) -> dict[str, Callable[..., object]]:
        return {
            name: method
            for name, method in inspect.getmembers(kind, inspect.isfunction)
            if not name.startswith("_") and name not in vars(Blocking)
        }

    assert methods(SyncClient).keys() == methods(Client).keys()
    for name, method in methods(Client).items():
        assert inspect.signature(method) == inspect.signature(getattr(SyncClient, name)), name


async def test_a_job_is_submitted_in_keywords_and_waited_for(house: House) -> None:
    queue = house.store.queue
    async with Client(address(house)) as client:
        job = await client.submit(
            queue, "k", submitter="user:ada", handler="grade", args={"n": 1}, metadata={"course": "x"}
        )
        assert (job.submitter.id, job.run["args"], job.metadata) == (
            "ada",
            {"n": 1},
            {"course": "x"},
        )
        working = asyncio.create_task(serve(house, "", "bad"))
        assert (await client.wait(queue, job.id, timeout=20)).result == [7]
        assert await client.result(queue, job.id) == [7]
        assert [piece.text async for piece in client.each_output(queue, job.id)] == ["hi"]
        bad = await client.submit(queue, "bad", submitter=("team", "red"), handler="grade")
        with pytest.raises(JobFailed) as failed:
            await client.result(queue, bad.id)
        assert (failed.value.code, failed.value.message, failed.value.id) == ("bad", "no good", bad.id)
        assert (await client.wait(queue, bad.id)).state == "failed"
        await working
        with pytest.raises(InvalidJob):
            await client.submit(queue, "k", submitter="ada", handler="grade")


async def test_whoever_waits_for_too_long_or_for_nothing_is_told_so(house: House) -> None:
    queue = house.store.queue
    async with Client(address(house)) as client:
        job = await client.put(queue, body())
        with pytest.raises(TimeoutError):
            await client.wait(queue, job.id, timeout=0.05)
        waiting = asyncio.create_task(client.wait(queue, job.id))
        await asyncio.sleep(0.05)
        await client.remove(queue, job.id)
        with pytest.raises(UnknownJob):
            await waiting


async def test_many_jobs_are_submitted_in_parts_and_listed_without_pages(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("maitred.client.sending.MOST_AT_ONCE", 3)
    monkeypatch.setattr("maitred.client.lists.MOST", "2")
    queue = house.store.queue
    async with Client(address(house)) as client:
        sent = [*(body(f"k{n}", f"user:{n}") for n in range(7)), {"key": ""}]
        answers = await client.submit_many(queue, iter(sent))
        assert [isinstance(answer, JobDocument) for answer in answers] == [True] * 7 + [False]
        assert isinstance(answers[-1], InvalidJob)
        ids = [answer.id for answer in answers if isinstance(answer, JobDocument)]
        assert sorted([job.id async for job in client.each_job(queue)]) == sorted(ids)
        assert [job.id async for job in client.each_waiting(queue)] == ids
        assert [job.id async for job in client.each_job(queue, submitter="user:3")] == [ids[3]]
        assert [each.name async for each in client.each_queue()] == [queue]
        assert [change.action async for change in client.each_change()]
        assert not [key async for key in client.each_running(queue)]


async def test_more_queues_than_a_page_has_are_listed_at_once() -> None:
    stores = MemoryStores()
    names = [f"q{number:02}" for number in range(60)]
    for name in names:
        await stores.queue(name).configure(Settings())
    app = create_app(Desk(stores), hosts=["house"])
    async with Client("http://house", transport=httpx.ASGITransport(app)) as client:
        assert [queue.name for queue in (await client.queues()).items] == names


async def test_a_batch_is_opened_filled_sealed_and_waited_for(house: House) -> None:
    queue = house.store.queue
    async with Client(address(house)) as client:
        batch = await client.open_batch(queue, submitter="user:1", external_id="week 3")
        assert (batch.sealed, batch.state) == (False, "pending")
        assert (await client.open_batch(queue, submitter="user:1", external_id="week 3")).id == batch.id
        added = await client.add_jobs(queue, batch.id, [body(f"k{n}", "user:1") for n in range(2)])
        assert all(isinstance(answer, JobDocument) for answer in added)
        await client.seal_batch(queue, batch.id)
        working = asyncio.create_task(serve(house, "", "bad"))
        report = await client.wait_batch(queue, batch.id, timeout=30)
        assert (len(report.completed), len(report.failed)) == (1, 1)
        await working
        assert [each.id async for each in client.each_batch(queue)] == [batch.id]


async def test_everything_is_watched_as_typed_events(house: House) -> None:
    queue = house.store.queue
    async with Client(address(house)) as client, aclosing(client.everything(queues=[queue])) as events:
        first = await anext(events)
        assert isinstance(first, QueueEvent)
        assert (first.name, first.queue) == (queue, queue)
        job = await client.submit(queue, "k", submitter="user:1", handler="grade")
        state = await anext(events)
        assert isinstance(state, JobStateEvent)
        assert (state.id, state.key, state.state) == (job.id, "k", "pending")
        await serve(house, "")
        async with aclosing(client.everything(last=state.event_id, names=["result"])) as results:
            result = await anext(results)
        assert isinstance(result, JobResultEvent)
        assert (result.id, result.result) == (job.id, [7])


def in_thread(house: House) -> tuple[list[str], MaitredError | None]:
    """Do as a program does that has no loop."""
    queue = house.store.queue
    with SyncClient(address(house)) as client:
        job = client.submit(queue, "k", submitter="user:1", handler="grade")
        with closing(client.watch(queue, job.id)) as events:
            told = [str(event.event) for event in events if isinstance(event, StateEvent | ResultEvent)]
        assert client.result(queue, job.id) == [7]
        assert [piece.text for piece in client.each_output(queue, job.id)] == ["hi"]
        with closing(client.everything()) as everything:
            assert isinstance(next(everything), QueueEvent)
        try:
            client.job(queue, "none")
        except UnknownJob as error:
            return told, error
    return told, None


async def test_a_program_without_a_loop_does_the_same(house: House) -> None:
    working = asyncio.create_task(serve(house, ""))
    told, error = await asyncio.to_thread(in_thread, house)
    await working
    assert told[0] == "state"
    assert told[-2:] == ["state", "result"]
    assert isinstance(error, UnknownJob)
    assert error.id == "none"
