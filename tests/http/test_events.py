"""Watching a job over HTTP: what is told, in which order, and how a watcher goes on that was cut off."""

import asyncio
from typing import Any

import pytest

from maitred.http import sse
from maitred.service import recent
from tests.http.guest import is_problem
from tests.http.house import House, rest, until
from tests.waiting import eventually


async def test_a_watcher_is_told_state_place_start_and_result_and_then_the_stream_ends(house: House) -> None:
    await house.works()
    await house.guest.submits("runs", "user:1")
    await house.guest.submits("before", "user:2")
    id = (await house.guest.submits("mine", "user:3"))["id"]
    async with house.watching(id) as stream:
        state = await anext(stream)
        assert (state.name, state.data["state"], state.data["phase"]) == ("state", "pending", "waiting")
        place = await anext(stream)
        assert (place.name, place.id, place.data["position"]) == ("place", None, 2)
        assert place.data["estimate"]["at_latest"]
        assert place.data["waiting_for"]["code"]
        await house.ends()
        moved = await until(stream, "place", position=1)
        assert moved.data["estimate"]["at_latest"] <= place.data["estimate"]["at_latest"]
        await house.ends()
        running = await until(stream, "state", phase="running")
        assert running.data["worker"] == "w"
        await house.ends()
        ended = await rest(stream)
        assert [event.name for event in ended] == ["state", "result"]
        assert ended[-1].data["result"] == {"ok": 1}
    gone_on = await house.guest.asks("GET", id, "/events", headers={"Last-Event-ID": ended[-1].id})
    assert gone_on.status_code == 204


async def test_a_job_is_given_up_when_nobody_watches_it_any_more(house: House) -> None:
    document = await house.guest.submits("mine", "user:3", abandon_after=3)
    id, [record] = document["id"], (await house.store.snapshot()).jobs
    assert document["abandon_after"] == 3.0

    async def deadline() -> int:
        return (await house.store.snapshot()).deadlines[record]

    async with house.watching(id) as stream:
        await anext(stream)
        first = await deadline()

        async def attended() -> bool:
            await house.store.tick()
            return await deadline() != first

        await eventually(attended)

    async def ended() -> bool:
        await house.store.tick()
        return bool((await house.guest.asks("GET", id)).json()["state"] == "failed")

    await eventually(ended)
    given_up = (await house.guest.asks("GET", id)).json()
    assert (given_up["code"], given_up["message"]) == ("abandoned", "nobody watched it for 3 s")


async def test_nobody_can_watch_a_job_that_is_not_known(house: House) -> None:
    assert is_problem(await house.guest.asks("GET", "nothing", "/events"), 404, "unknown-job")


async def test_a_watcher_that_was_cut_off_hears_the_rest_and_nothing_twice(house: House) -> None:
    id = (await house.guest.submits())["id"]
    async with house.watching(id) as stream:
        first = await anext(stream)
    await house.works()
    async with house.watching(id, first.id) as stream:
        running = await until(stream, "state")
        assert running.data["phase"] == "running"
    await house.ends()
    async with house.watching(id, running.id) as stream:
        told = await rest(stream)
    assert [(event.name, event.data.get("state")) for event in told] == [
        ("state", "completed"),
        ("result", None),
    ]


async def test_a_start_and_an_end_that_were_missed_are_both_told(house: House) -> None:
    id = (await house.guest.submits())["id"]
    async with house.watching(id) as stream:
        first = await anext(stream)
        await house.works()
        await until(stream, "state", phase="running")
    await house.ends()
    async with house.watching(id, first.id) as stream:
        told = await rest(stream)
    assert [event.data.get("phase", "-") for event in told] == ["running", None, "-"]


async def test_a_watcher_that_comes_back_too_late_is_told_so_and_then_the_present(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent, "KEPT", 4)
    id = (await house.guest.submits())["id"]
    async with house.watching(id) as stream:
        first = await anext(stream)
    for number in range(10):
        other = await house.guest.submits(f"other{number}", f"user:{number}")
        async with house.watching(other["id"]) as stream:
            await anext(stream)
    async with house.watching(id, first.id) as stream:
        reset, state = await anext(stream), await anext(stream)
    assert (reset.name, state.name, state.data["phase"]) == ("reset", "state", "waiting")


async def test_an_id_that_is_none_of_ours_is_answered_with_a_reset(house: House) -> None:
    id = (await house.guest.submits())["id"]
    async with house.watching(id, "what") as stream:
        assert [(await anext(stream)).name, (await anext(stream)).name] == ["reset", "state"]


async def test_a_silent_stream_is_kept_open(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT", 0.05)
    id = (await house.guest.submits())["id"]
    async with house.watching(id) as stream:
        names = [(await anext(stream)).name for _ in range(4)]
    assert names == ["state", "place", "", ""]


async def test_a_watcher_of_a_deleted_job_is_told_so(house: House) -> None:
    id = (await house.guest.submits())["id"]
    async with house.watching(id) as stream:
        await until(stream, "place")
        assert (await house.guest.asks("DELETE", id)).status_code == 204
        told = await rest(stream)
    assert [event.data["state"] for event in told] == ["deleted"]


async def test_streams_end_when_the_server_stops(house: House) -> None:
    id = (await house.guest.submits())["id"]
    async with house.watching(id) as stream:
        await until(stream, "place")
        house.foresights.close()
        assert not await rest(stream)


async def test_a_thousand_watchers_hear_of_the_start_and_the_end(house: House) -> None:
    id = (await house.guest.submits())["id"]
    base = house.guest.http.base_url
    asked = f"GET {house.guest.url}/jobs/{id}/events HTTP/1.1\r\nHost: {base.netloc.decode()}\r\n\r\n"
    waiting = asyncio.Semaphore(0)

    async def watch() -> list[str]:
        reader, writer = await asyncio.open_connection(base.host, base.port)
        writer.write(asked.encode())
        heard: list[str] = []
        while not heard or heard[-1] != "result":
            line = (await reader.readline()).decode().strip()
            if line.startswith("event: "):
                heard.append(line.removeprefix("event: "))
                if heard[-1] == "place":
                    waiting.release()
        writer.close()
        return heard

    watchers = [asyncio.create_task(watch()) for _ in range(1_000)]
    for _ in watchers:
        await waiting.acquire()
    await house.works()
    await house.ends()
    heard = await asyncio.gather(*watchers)
    assert all(names == ["state", "place", "state", "state", "result"] for names in heard)
    told = house.foresights.watchers(house.store.queue)
    assert told is not None
    assert not len(told)


async def test_a_queue_tells_how_long_jobs_waited_and_how_its_ranges_held(house: House) -> None:
    assert (await house.guest.sees(""))["waits"] is None
    await house.works()
    last: dict[str, Any] = {}
    for number in range(6):
        last = await house.guest.submits(f"k{number}", f"user:{number}")
    async with house.watching(last["id"]) as stream:
        for _ in range(6):
            await house.ends()
        await rest(stream)
    waits = (await house.guest.sees(""))["waits"]
    assert waits["count"] == 6
    assert 0 <= waits["p50"] <= waits["p90"] <= waits["p99"]
    assert waits["estimate"]["quoted"] >= 5
    assert 0 <= waits["estimate"]["covered"] <= waits["estimate"]["quoted"]


async def test_a_watcher_of_a_held_job_is_told_who_holds_it_and_why_and_that_it_goes_on(house: House) -> None:
    id = (await house.guest.submits())["id"]
    async with house.watching(id) as stream:
        await until(stream, "place")
        await house.guest.asks("POST", id, "/hold", json={"reason": "no disk"})
        held = await until(stream, "state", state="held")
        assert [(hold["by"], hold["reason"]) for hold in held.data["holds"]] == [("admin", "no disk")]
        await house.guest.asks("POST", id, "/resume")
        back = await until(stream, "state", state="pending")
        assert (back.data["phase"], back.data["holds"]) == ("waiting", [])
        assert (await until(stream, "place")).data["position"] == 1
