"""Watching everything over HTTP: all queues in one stream, and how a watcher goes on that was cut off."""

import contextlib
from collections.abc import AsyncIterator

from tests.http.house import Event, House, events, until


@contextlib.asynccontextmanager
async def everything(
    house: House, last: str | None = None, key: str | None = None, **query: str
) -> AsyncIterator[AsyncIterator[Event]]:
    headers = ({"Last-Event-ID": last} if last else {}) | ({"Authorization": f"Bearer {key}"} if key else {})
    http = house.guest.http
    async with http.stream("GET", "/api/v1/events", headers=headers, params=query, timeout=20) as answer:
        assert answer.status_code == 200, await answer.aread()
        yield events(answer)


async def test_a_watcher_hears_how_each_queue_is_and_then_each_step_of_each_job(house: House) -> None:
    queue = house.store.queue
    async with everything(house) as stream:
        first = await anext(stream)
        assert (first.name, first.data["queue"], first.data["workers"]) == ("queue", queue, [])
        id = (await house.guest.submits("a", "user:1"))["id"]
        state = await until(stream, "state")
        assert state.data["queue"] == queue
        assert (state.data["id"], state.data["key"], state.data["state"]) == (id, "a", "pending")
        await house.works()
        running = await until(stream, "state", phase="running")
        joined = await until(stream, "queue")
        assert [worker["name"] for worker in joined.data["workers"]] == ["w"]
        assert (running.data["id"], running.data["worker"]) == (id, "w")
        await house.ends()
        assert (await until(stream, "state")).data["state"] == "completed"
        assert (await until(stream, "result")).data["result"] == {"ok": 1}
        await house.guest.asks("DELETE", id)
        assert (await until(stream, "state")).data == {
            "queue": queue,
            "id": id,
            "state": "deleted",
            "phase": None,
        }
