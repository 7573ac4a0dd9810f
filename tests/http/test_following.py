"""The stream of a job's events as it goes over the wire."""

from collections.abc import AsyncIterator
from urllib.parse import quote

import httpx
import pytest

from maitred.client.stream import Message, messages
from maitred.http import sse
from maitred.wire import decode_json
from tests.http.guest import body, is_problem
from tests.http.test_client_events import open_house

JOBS = "/api/v1/queues/grading/jobs"


@pytest.fixture
async def ended() -> AsyncIterator[tuple[httpx.AsyncClient, str]]:
    """A job that was cancelled, and someone who asks about it."""
    async with open_house() as (client, _), httpx.AsyncClient(base_url=client.address) as http:
        job = await client.put("grading", body())
        await client.cancel("grading", job.id, "enough")
        yield http, f"{JOBS}/{quote(job.id, safe='')}/events"


async def told(answer: httpx.Response) -> list[Message]:
    return [message async for message in messages(answer.aiter_bytes())]


async def test_a_job_that_has_ended_is_told_whole_and_the_stream_ends(
    ended: tuple[httpx.AsyncClient, str],
) -> None:
    http, events = ended
    answer = await http.get(events)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.text.startswith("retry: ")
    state, result = await told(answer)
    assert (state.event, decode_json(state.data)["state"]) == ("state", "failed")
    assert (result.event, decode_json(result.data)["code"]) == ("result", "cancelled")
    again = await http.get(events, headers={"last-event-id": result.id or ""})
    assert (again.status_code, again.content) == (204, b"")


async def test_whoever_was_cut_off_before_the_result_still_hears_it(
    ended: tuple[httpx.AsyncClient, str],
) -> None:
    http, events = ended
    state, result = await told(await http.get(events))
    rest = await http.get(events, headers={"last-event-id": state.id or ""})
    assert await told(rest) == [result]


@pytest.mark.parametrize("id", ["nonsense", "0-0.1.2.3.4", "\xc3\xa9"])
async def test_an_id_from_which_nobody_can_go_on_is_a_reset(
    ended: tuple[httpx.AsyncClient, str], id: str
) -> None:
    http, events = ended
    answer = await http.get(events, headers=[(b"last-event-id", id.encode("latin-1"))])
    assert [message.event for message in await told(answer)] == ["reset", "state", "result"]


async def test_what_is_not_there_is_a_problem(ended: tuple[httpx.AsyncClient, str]) -> None:
    http, events = ended
    assert is_problem(await http.get(f"{JOBS}/nobody/events"), 404, "unknown-job")
    assert is_problem(await http.get("/api/v1/queues/nope/jobs/x/events"), 404, "unknown-queue")
    assert is_problem(await http.get(events, params={"version": 9}), 404, "unknown-job")
    assert is_problem(await http.get(events, params={"version": 0}), 422, "invalid")
    assert is_problem(await http.get(events, params={"from": 0}), 422, "invalid")


async def test_a_silent_stream_is_kept_open_by_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT", 0.01)
    async with open_house() as (client, _), httpx.AsyncClient(base_url=client.address) as http:
        job = await client.put("grading", body())
        async with http.stream("GET", f"{JOBS}/{quote(job.id, safe='')}/events") as answer:
            async for line in answer.aiter_lines():
                if line.startswith(":"):
                    break
            else:
                pytest.fail("the stream ended")
