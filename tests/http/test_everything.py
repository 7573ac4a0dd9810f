"""Watching everything over HTTP: all queues in one stream, and how a watcher goes on that was cut off."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from maitred.core.output import Part, Saying
from maitred.core.settings import Settings
from maitred.http import sse
from maitred.service import per_queue, recent
from maitred.service.keyring import Keys
from maitred.store.memory import MemoryStores
from tests.closing import closing
from tests.conftest import Servers, connect
from tests.http.guest import body, is_problem
from tests.http.house import Event, House, open_house, until

STEPS = ["state", "output", "progress", "result", "batch"]


def step(event: Event) -> tuple[Any, ...]:
    """Give what an event tells, without what is good for its moment only."""
    return event.name, *(event.data.get(name) for name in ("id", "state", "phase", "text", "result"))


async def some(stream: AsyncIterator[Event], count: int) -> list[Event]:
    async with asyncio.timeout(20):
        return [await anext(stream) for _ in range(count)]


async def play(house: House) -> list[str]:
    """Let three jobs come in together, one of them run, say something and end, and one be deleted."""
    sent = [body(key, f"user:{key}") for key in "abc"]
    answer = await house.guest.http.post(f"{house.guest.url}/jobs/many", json=sent)
    first, second, third = [item["id"] for item in answer.json()["items"]]
    await house.works()
    parts = (Part("stdout", b"one"), Part("progress", b'{"fraction": 0.5}'), Part("stdout", b"two"))
    await house.store.say("w", [Saying(house.held[0].lease, parts)])
    await house.ends()
    await house.guest.asks("DELETE", third)
    return [first, second, third]


# Three submitted, one runs, three pieces, its end and result, the next runs, one is deleted.
PLAYED = 11


async def test_a_watcher_hears_how_each_queue_is_and_then_each_step_of_each_job(house: House) -> None:
    queue = house.store.queue
    async with house.everything() as stream:
        first = await anext(stream)
        assert (first.name, first.data["queue"], first.data["workers"]) == ("queue", queue, [])
        id = (await house.guest.submits("a", "user:1"))["id"]
        state = await until(stream, "state")
        assert state.data["queue"] == queue
        assert (state.data["id"], state.data["key"], state.data["state"]) == (id, "a", "pending")
        await house.works()
        running = await until(stream, "state", phase="running")
        assert (running.data["id"], running.data["worker"]) == (id, "w")
        joined = await until(stream, "queue")
        assert [worker["name"] for worker in joined.data["workers"]] == ["w"]
        await house.ends()
        assert (await until(stream, "state")).data["state"] == "completed"
        assert (await until(stream, "result")).data["result"] == {"ok": 1}
        await house.guest.asks("DELETE", id)
        gone = await until(stream, "state")
        assert (gone.data["id"], gone.data["state"]) == (id, "deleted")
        await house.guest.http.post(f"{house.guest.url}/pause", json={"reason": "lunch"})
        assert (await until(stream, "queue")).data["pause"]["reason"] == "lunch"
        sent = {"submitter": {"type": "user", "id": "1"}, "jobs": [body("b", "user:1")], "external_id": "x"}
        await house.guest.http.post(f"{house.guest.url}/batches", json=sent)
        batch = await until(stream, "batch", sealed=True)
        assert (batch.data["queue"], batch.data["external_id"]) == (queue, "x")


async def test_a_step_that_is_told_late_is_told_as_it_was(house: House) -> None:
    async with house.everything() as stream:
        start = await anext(stream)
    await house.guest.submits()
    await house.works()
    async with house.everything(last=start.id) as stream:
        heard = [await until(stream, "state") for _ in range(2)]
    told = [(each.data["phase"], each.data["attempt"], each.data["worker"]) for each in heard]
    assert told == [("waiting", 0, None), ("running", 1, "w")]


async def test_whoever_goes_on_after_any_event_hears_the_rest_and_nothing_twice(house: House) -> None:
    async with house.everything(event=STEPS) as stream, house.everything() as other:
        await anext(other)
        await play(house)
        told = await some(stream, PLAYED)
    for index, event in enumerate(told[:-1]):
        async with house.everything(event.id, event=STEPS) as stream:
            rest = await some(stream, PLAYED - 1 - index)
        assert [step(each) for each in rest] == [step(each) for each in told[index + 1 :]]
    assert len({event.id for event in told}) == PLAYED


@pytest.mark.parametrize("kind", ["valkey"])
async def test_a_watcher_goes_on_at_another_server_and_after_a_restart(
    servers: Servers, queue_name: str, kind: str
) -> None:
    heard: list[Event] = []
    async with closing(connect(servers, kind, None)) as stores:
        async with open_house(queue_name, stores) as here, open_house(queue_name, stores) as there:
            async with here.everything(event=STEPS) as stream, here.everything() as other:
                await anext(other)
                ids = await play(here)
                heard += await some(stream, 2)
            async with there.everything(heard[-1].id, event=STEPS) as stream:
                heard += await some(stream, 4)
        async with (
            open_house(queue_name, stores) as anew,
            anew.everything(heard[-1].id, event=STEPS) as stream,
        ):
            heard += await some(stream, PLAYED - len(heard))
            await anew.guest.submits("last", "user:9")
            assert (await anext(stream)).data["key"] == "last"
        assert sorted(event.data["id"] for event in heard[:3]) == sorted(ids)
        assert [step(event)[3:5] for event in heard[3:7]] == [
            ("running", None),
            (None, "one"),
            (None, None),
            (None, "two"),
        ]
        assert [(event.name, event.data.get("state")) for event in heard[7:]] == [
            ("state", "completed"),
            ("result", None),
            ("state", "processing"),
            ("state", "deleted"),
        ]


@pytest.mark.parametrize("kind", ["valkey"])
async def test_watchers_of_a_job_and_a_batch_go_on_at_another_server_and_after_a_restart(
    servers: Servers, queue_name: str, kind: str
) -> None:
    async with closing(connect(servers, kind, None)) as stores:
        async with open_house(queue_name, stores) as here, open_house(queue_name, stores) as there:
            sent = {"submitter": {"type": "user", "id": "1"}, "jobs": [body("k", "user:1")]}
            batch = (await here.guest.http.post(f"{here.guest.url}/batches", json=sent)).json()["id"]
            async with here.stream(f"/batches/{batch}/events") as of_batch:
                counted = await until(of_batch, "state", sealed=True)
            [job] = (await here.guest.sees("/jobs"))["items"]
            async with here.watching(job["id"]) as of_job:
                pending = await until(of_job, "state", state="pending")
            await there.works()
            async with there.watching(job["id"], pending.id) as of_job:
                running = await anext(of_job)
                assert (running.name, running.data["phase"]) == ("state", "running")
        async with open_house(queue_name, stores) as anew:
            anew.held = there.held
            await anew.ends()
            async with anew.watching(job["id"], running.id) as of_job:
                assert [event.name async for event in of_job] == ["state", "result"]
            async with anew.stream(f"/batches/{batch}/events", counted.id) as of_batch:
                told = [event async for event in of_batch if event.name != "state"]
                assert [event.name for event in told] == ["report"]


async def test_whoever_was_away_for_too_long_is_told_so_and_how_the_queue_is(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent, "KEPT", 4)
    async with house.everything() as stream:
        first = await anext(stream)
    for number in range(6):
        await house.guest.submits(f"k{number}", "user:1")
    async with house.everything(first.id) as stream:
        [reset, queue] = await some(stream, 2)
        assert (reset.name, reset.data) == ("reset", {"queue": house.store.queue})
        assert (queue.name, queue.data["waiting"]) == ("queue", 6)
        await house.guest.submits("after", "user:1")
        assert (await anext(stream)).data["key"] == "after"
    async with house.everything(reset.id) as stream:
        assert (await anext(stream)).data["key"] == "after"


async def test_a_stream_on_which_nothing_happens_says_that_it_lives(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT", 0.05)
    async with house.everything() as stream:
        assert [event.name for event in await some(stream, 3)] == ["queue", "", ""]


async def test_an_id_that_is_none_is_a_reset(house: House) -> None:
    for id in ("nonsense", "5.", "-1", "ff.abcdef", "x" * 5_000):
        async with house.everything(id) as stream:
            assert [event.name for event in await some(stream, 2)] == ["reset", "queue"]


async def test_a_queue_that_is_made_meanwhile_joins_in(
    queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(per_queue, "LOOK_EVERY", 0.05)
    stores = MemoryStores()
    async with open_house(queue_name, stores) as house, house.everything() as stream:
        await anext(stream)
        other = stores.queue("other")
        await other.configure(Settings())
        assert (await until(stream, "queue", queue="other")).data["waiting"] == 0
        await house.guest.http.put("/api/v1/queues/other/jobs", json=body("here", "user:1"))
        told = await until(stream, "state", queue="other")
        await house.guest.submits("there", "user:1")
        both = await until(stream, "state", queue=queue_name)
        async with house.everything(told.id) as again:
            assert (await anext(again)).data["key"] == "there"
        await house.guest.http.put("/api/v1/queues/other/jobs", json=body("more", "user:1"))
        async with house.everything(both.id) as again:
            assert (await anext(again)).data["key"] == "more"


async def test_a_key_hears_what_it_may_see(queue_name: str) -> None:
    stores = MemoryStores()
    await stores.queue("other").configure(Settings())
    async with open_house(queue_name, stores) as house:
        keys, http = Keys(stores.keyring), house.guest.http
        submitter = (await keys.create("submitter", submitters=["user:1"])).key
        viewer = (await keys.create("viewer", queues=["other"])).key
        operator = (await keys.create("operator")).key
        http.headers["Authorization"] = f"Bearer {operator}"
        async with house.everything(key=submitter) as stream, house.everything(key=viewer) as elsewhere:
            queues = await some(stream, 2)
            assert {event.data["queue"] for event in queues} == {queue_name, "other"}
            assert all("workers" not in event.data for event in queues)
            await house.guest.submits("theirs", "user:2")
            await house.guest.submits("mine", "user:1")
            theirs, own = await some(stream, 2)
            assert theirs.data.keys() == {"queue", "id", "band", "class", "state", "position"}
            assert (own.data["key"], own.data["submitter"]["id"]) == ("mine", "1")
            await house.works()
            await house.ends()
            results = [event for event in await some(stream, 4) if event.name == "result"]
            assert not results, "another submitter's result is not told"
            await http.put("/api/v1/queues/other/jobs", json=body("k", "user:3"))
            heard = await some(elsewhere, 2)
            assert [(event.name, event.data["queue"]) for event in heard] == [
                ("queue", "other"),
                ("state", "other"),
            ]
        refused = await http.get(
            "/api/v1/events", params={"queue": queue_name}, headers={"Authorization": f"Bearer {viewer}"}
        )
        assert is_problem(refused, 403, "forbidden")


async def test_what_cannot_be_watched_is_refused(house: House) -> None:
    ask = house.guest.http.get
    assert is_problem(await ask("/api/v1/events", params={"queue": "none"}), 404, "unknown-queue")
    assert is_problem(await ask("/api/v1/events", params={"event": "place"}), 422, "invalid")
