"""Watching a batch over HTTP: its state and counts, its report, and how one goes on that was cut off."""

from contextlib import aclosing
from typing import Any

import pytest

from maitred.client import Client
from maitred.errors import BatchSealed, IllegalMove, NoReport, NotHeld, OtherSubmitter, UnknownBatch
from maitred.http import sse
from maitred.wire import BatchReportEvent, BatchStateEvent, JobDocument
from tests.http.guest import body, is_problem
from tests.http.house import House, rest, until

BATCH: dict[str, Any] = {"submitter": {"type": "user", "id": "ada"}, "run": {"handler": "grade"}}


async def fills(house: House, *keys: str) -> str:
    """Submit a batch of these jobs; give its id when they are in."""
    jobs = [{"key": key, "submitter": {"type": "user", "id": key}} for key in keys]
    answer = await house.guest.http.post(f"{house.guest.url}/batches", json={**BATCH, "jobs": jobs})
    assert answer.status_code == 201, answer.text
    bid = str(answer.json()["id"])
    async with house.stream(f"/batches/{bid}/events") as stream:
        await until(stream, "state", sealed=True)
    return bid


async def test_a_watcher_is_told_counts_and_the_report_and_then_the_stream_ends(house: House) -> None:
    bid = await fills(house, "a", "b")
    async with house.stream(f"/batches/{bid}/events") as stream:
        first = await anext(stream)
        assert (first.name, first.data["counts"]["pending"]) == ("state", 2)
        await house.works()
        running = await until(stream, "state", state="processing")
        assert running.data["counts"]["processing"] == 1
        await house.ends()
        await house.ends("error")
        told = await rest(stream)
    assert [event.name for event in told][-2:] == ["state", "report"]
    report = told[-1].data
    assert (report["sequence"], report["kind"], report["state"]) == (1, "report", "failed")
    assert (report["completed"], report["failed"], report["deleted"]) == (1, 1, 0)
    url = f"{house.guest.url}/batches/{bid}/events"
    gone_on = await house.guest.http.get(url, headers={"Last-Event-ID": str(told[-1].id)})
    assert gone_on.status_code == 204


async def test_a_watcher_that_was_cut_off_hears_the_rest_and_nothing_twice(house: House) -> None:
    bid = await fills(house, "a")
    async with house.stream(f"/batches/{bid}/events") as stream:
        first = await anext(stream)
    await house.works()
    async with house.stream(f"/batches/{bid}/events", first.id) as stream:
        running = await anext(stream)
        assert running.data["counts"]["processing"] == 1
        await house.ends()
        told = await rest(stream)
    state = next(event for event in told if event.data.get("state") == "completed")
    async with house.stream(f"/batches/{bid}/events", state.id) as stream:
        assert [event.name for event in await rest(stream)] == ["report"]


async def test_a_watcher_that_missed_a_report_is_told_so_and_then_the_present(house: House) -> None:
    bid = await fills(house, "a")
    async with house.stream(f"/batches/{bid}/events") as stream:
        first = await anext(stream)
        await house.works()
        await house.ends("error")
        told = await rest(stream)
    await house.guest.http.post(f"{house.guest.url}/batches/{bid}/update-report")
    async with house.stream(f"/batches/{bid}/events", told[-1].id) as stream:
        updated = await rest(stream)
    assert updated[-1].data["kind"] == "update-report"
    async with house.stream(f"/batches/{bid}/events", first.id) as stream:
        missed = await rest(stream)
    assert [event.name for event in missed] == ["reset", "state", "report"]
    assert missed[-1].data["sequence"] == 2


@pytest.mark.parametrize("last", ["what", "1", "9" * 40 + ".end", "1.2.3", "-1.end", "٣.end"])
async def test_an_id_that_is_none_of_ours_is_answered_with_a_reset(house: House, last: str) -> None:
    bid = await fills(house, "a")
    headers = {b"Last-Event-ID": last.encode()}
    url = f"{house.guest.url}/batches/{bid}/events"
    async with house.guest.http.stream("GET", url, headers=headers) as answer:
        lines = answer.aiter_lines()
        seen = [line async for line in _until_data(lines)]
    assert "event: reset" in seen


async def _until_data(lines: Any) -> Any:
    async for line in lines:
        yield line
        if line.startswith('data: {"state"'):
            return


async def test_a_watcher_of_a_deleted_batch_is_told_so(house: House) -> None:
    bid = await fills(house)
    async with house.stream(f"/batches/{bid}/events") as stream:
        told = await rest(stream)
    assert told[-1].data["state"] == "completed", "an empty batch completes"
    opened = await house.guest.http.post(f"{house.guest.url}/batches", json={**BATCH, "seal": False})
    other = opened.json()["id"]
    async with house.stream(f"/batches/{other}/events") as stream:
        await anext(stream)
        assert (await house.guest.http.delete(f"{house.guest.url}/batches/{other}")).status_code == 204
        told = await rest(stream)
    assert [event.data["state"] for event in told] == ["deleted"]
    gone = await house.guest.http.get(f"{house.guest.url}/batches/{other}/events")
    assert is_problem(gone, 404, "unknown-batch")


async def test_a_silent_stream_is_kept_open_and_ends_when_the_server_stops(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT", 0.05)
    bid = await fills(house, "a")
    async with house.stream(f"/batches/{bid}/events") as stream:
        assert [(await anext(stream)).name for _ in range(3)] == ["state", "", ""]
        house.foresights.close()
        assert all(not event.name for event in await rest(stream))


async def test_the_client_has_every_verb_of_batches_and_holds(house: House) -> None:
    queue = house.store.queue
    async with Client(str(house.guest.http.base_url)) as client:
        batch = await client.submit_batch(queue, {**BATCH, "external_id": "x", "seal": False})
        assert (batch.outcome, batch.state, batch.sealed) == ("created", "pending", False)
        with pytest.raises(OtherSubmitter):
            await client.submit_batch(
                queue, {"submitter": {"type": "user", "id": "bob"}, "external_id": "x", "seal": False}
            )
        first, wrong = await client.add_jobs(queue, batch.id, [body("a"), {"key": ""}])
        assert isinstance(first, JobDocument)
        assert not isinstance(wrong, JobDocument)
        assert (await client.seal_batch(queue, batch.id)).sealed
        with pytest.raises(BatchSealed):
            await client.seal_batch(queue, batch.id)
        with pytest.raises(NoReport):
            await client.report(queue, batch.id)
        assert (await client.hold_batch(queue, batch.id, "why")).holds[0].reason == "why"
        await client.resume_batch(queue, batch.id)
        with pytest.raises(NotHeld):
            await client.resume_batch(queue, batch.id)
        assert (await client.hold_job(queue, first.id, "why")).state == "held"
        assert (await client.resume_job(queue, first.id)).state == "pending"
        assert (await client.prioritise(queue, first.id, 2)).priority == 2
        assert (await client.hold_submitter(queue, "user", "1")).held
        assert not (await client.resume_submitter(queue, "user", "1")).held
        assert (await client.hold_profile(queue, "p", "why")).held
        assert not (await client.resume_profile(queue, "p")).held
        assert (await client.reconcile(queue)).changes == []
        async with aclosing(client.watch_batch(queue, batch.id)) as events:
            assert isinstance(await anext(events), BatchStateEvent)
            await house.works()
            await house.ends("error")
            heard = [event async for event in events]
        assert isinstance(heard[-1], BatchReportEvent)
        assert (await client.report(queue, batch.id)).failed[0].key == "a"
        with pytest.raises(IllegalMove) as refused:
            await client.hold_batch(queue, batch.id)
        assert (refused.value.old, refused.value.new) == ("failed", "held")
        assert str(refused.value) == "from 'failed' there is no move to 'held'"
        assert await client.retry_batch(queue, batch.id) == 1
        await house.ends()
        assert (await client.update_report(queue, batch.id)).state == "update-reporting"
        async with aclosing(client.watch_batch(queue, batch.id)) as events:
            heard = [event async for event in events]
        assert (await client.batches(queue, state="completed")).items[0].id == batch.id
        await client.remove_batch(queue, batch.id)
        for unknown in (batch.id, "..", "a/b", ""):
            with pytest.raises(UnknownBatch):
                await client.batch(queue, unknown)
