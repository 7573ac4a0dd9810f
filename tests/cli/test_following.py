"""Following a job: by events, and by asking again where a server has none."""

import json
from typing import Any

import httpx
import pytest

from maitred.cli import following
from maitred.cli.following import follow
from maitred.cli.waiting import Wait
from maitred.client import Client
from maitred.errors import UnknownJob
from maitred.wire import JobDocument
from maitred.wire.document import _FIRST

STATES: tuple[dict[str, Any], ...] = (
    {"position": 2},
    {"position": 1},
    {"phase": "running", "position": None},
    {"phase": None, "position": None, "state": "completed", "result": 42},
)


class Older:
    """A server that has no stream of events; each answer is one state further."""

    def __init__(self, *, refusal: str, status: int) -> None:
        self.asked: list[str] = []
        self._refusal, self._status = refusal, status
        self._states = list(STATES)

    def client(self) -> Client:
        return Client("http://x", transport=httpx.MockTransport(self._answer))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request.url.path.rpartition("/")[2])
        if self.asked[-1] == "events":
            problem = {"type": f"urn:maitred:problem:{self._refusal}", "detail": "no", "status": self._status}
            return httpx.Response(self._status, json=problem)
        state = self._states.pop(0) if len(self._states) > 1 else self._states[0]
        return httpx.Response(200, json={**_FIRST, **state})


@pytest.mark.parametrize(("refusal", "status"), [("no-such-route", 404), ("unavailable", 503)])
async def test_a_server_without_events_is_asked_again_and_again(
    refusal: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(following, "FIRST_PAUSE", 0.0)
    server = Older(refusal=refusal, status=status)
    async with server.client() as client:
        ended = await Wait("grading").put(client, {})
    assert (ended.state, ended.result) == ("completed", 42)
    assert server.asked.count("events") == 1
    told = [line.partition(" ")[2] for line in capsys.readouterr().err.splitlines()]
    assert told == [
        "is number 2 in line: all slots are busy.",
        "is number 1 in line: all slots are busy.",
        "runs.",
    ]


async def test_with_events_nobody_is_asked_again() -> None:
    events = [
        ("state", {"state": "pending", "phase": "waiting", "version": 1, "duration": 5.0}),
        ("place", {"position": 4, "waiting_for": {"code": "slots", "text": "all slots are busy"}}),
        ("reset", {}),
        ("state", {"state": "processing", "phase": "running", "version": 1, "worker": "w", "attempt": 1}),
        ("state", {"state": "failed", "phase": None, "version": 1, "code": "exit", "message": "no"}),
        ("result", {"result": {"exit": 7}, "code": "exit", "message": "no"}),
    ]
    text = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, text=text)

    first = JobDocument.model_validate(_FIRST)
    async with Client("http://x", transport=httpx.MockTransport(answer)) as client:
        seen = [job async for job in follow(client, first)]
    assert [job.phase for job in seen] == ["waiting", "waiting", "waiting", "running", None, None]
    assert [job.position for job in seen] == [1, 4, 4, None, None, None]
    assert (seen[3].worker, seen[3].waiting_for) == ("w", None)
    assert (seen[-1].state, seen[-1].code, seen[-1].result) == ("failed", "exit", {"exit": 7})
    assert seen[-1].run == first.run


async def test_a_deletion_is_raised_once_it_was_told() -> None:
    def answer(_request: httpx.Request) -> httpx.Response:
        text = 'event: state\ndata: {"state": "deleted", "version": 1}\n\n'
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, text=text)

    async with Client("http://x", transport=httpx.MockTransport(answer)) as client:
        with pytest.raises(UnknownJob):
            _ = [job async for job in follow(client, JobDocument.model_validate(_FIRST))]
