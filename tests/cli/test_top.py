"""`maitred top`: a queue at a glance."""

import asyncio
import signal
from typing import Any

import httpx
import pytest
from rich.console import Console

from maitred.cli import top
from maitred.client import Client
from maitred.errors import ServerUnreachable, UnknownQueue
from maitred.wire import JobDocument, OthersJob, Page, QueueDocument, RunningJob
from maitred.wire.document import _FIRST
from tests.cli.conftest import Terminal
from tests.cli.house import House

RENDER: dict[str, Any] = {
    "name": "render",
    "settings": {"order": "newest-first", "time_limit": 30.0},
    "counts": {},
    "waiting": 2,
    "running": 1,
    "slots": 4,
    "free": 3,
    "classes": [
        {"name": "fast", "cap": 3.0, "limit": 4, "running": 0, "used": 1},
        {"name": "slow", "cap": 30.0, "limit": 1, "running": 1, "used": 1},
    ],
    "paused": False,
    "held": {},
    "waits": {
        "count": 9,
        "mean": 1.0,
        "p50": 2.0,
        "p90": 70.0,
        "p99": 80.0,
        "window": 9.0,
        "estimate": {"quoted": 9, "covered": 8},
    },
    "now": "2026-11-15T20:56:00Z",
}
RUNS: dict[str, Any] = {
    "id": "r" * 24,
    "key": "scene",
    "version": 1,
    "attempt": 1,
    "submitter": {"type": "user", "id": "ada"},
    "class": "slow",
    "duration": 30.0,
    "elapsed": 15.0,
    "started_at": "2026-11-15T20:55:45Z",
    "worker": "w",
}


def frame(waiting: int = 2, running: int = 1) -> top.Frame:
    line = [{**_FIRST, "key": f"essay-{number}", "position": number} for number in range(1, waiting + 1)]
    runs = [RUNS] * running
    return top.Frame(
        QueueDocument.model_validate(RENDER),
        Page[RunningJob | OthersJob].model_validate({"items": runs, "next": None, "total": running}),
        Page[JobDocument | OthersJob].model_validate({"items": line, "next": None, "total": waiting}),
    )


def drawn(frame: top.Frame, *, rows: int = 20, width: int = 140, **how: Any) -> list[str]:
    console = Console(width=width)
    with console.capture() as shown:
        console.print(top.show(frame, rows, width=width, **how))
    return [line.rstrip() for line in shown.get().splitlines()]


def test_a_frame_has_levels_what_runs_and_who_is_next() -> None:
    shown = drawn(frame())
    assert shown[:3] == [
        "render is open: 2 waiting, 1 running, 3 of 4 slots free.",
        "Waits of the last 9 starts: half at most 2 s, nine in ten at most 70 s.",
        "",
    ]
    assert shown[3].split() == ["slots", "1", "of", "4", "━" * 10 + "─" * 30]
    assert shown[5].split() == ["slow", "up", "to", "30", "s", "1", "of", "1", "━" * 40]
    scene = next(line for line in shown if line.startswith("scene"))
    assert "15 s of 30 s  " + "━" * 8 + "─" * 8 in scene
    assert scene.endswith("r" * 24)
    first = next(line for line in shown if "essay-1" in line)
    assert first.split()[:4] == ["1", "essay-1", "user:ada", "medium"]
    assert "all slots are busy" in first
    assert first.endswith(str(_FIRST["id"]))


def test_a_row_is_a_line_and_an_id_is_whole_or_not_there() -> None:
    for width in (40, 80, 109, 110, 200):
        shown = drawn(frame(), width=width)
        assert sum("essay-" in line or "e…" in line for line in shown) <= 2
        assert all(len(line) <= width for line in shown)
        assert ("r" * 24 in "\n".join(shown)) == (width >= 110), width
        assert "r" * 23 + "…" not in "\n".join(shown)


def test_those_who_have_no_room_are_counted() -> None:
    assert drawn(frame(waiting=5), rows=3)[-1] == "and 2 more"
    crowded = drawn(frame(waiting=20, running=20), fitting=10)
    assert [line for line in crowded if line.startswith("and")] == ["and 15 more", "and 15 more"]
    calm = drawn(frame(waiting=20, running=2), fitting=10)
    assert [line for line in calm if line.startswith("and")] == ["and 12 more"]


def test_an_empty_queue_says_so() -> None:
    shown = drawn(frame(0, 0))
    assert "nothing" in shown
    assert any(line.strip() == "nobody" for line in shown)


def test_a_frame_that_is_old_says_so() -> None:
    lost = drawn(frame(), lost=ServerUnreachable("No server answers."))[2]
    assert lost == "No server answers. This was seen at 20:56:00 UTC."


def test_without_a_terminal_one_frame_is_printed(served: Terminal) -> None:
    for number in (1, 2):
        served.gets("submit", "-q", "render", "--class", "slow", "--key", f"[b]k{number}\x1b", "--", "ls")
    for words in (("top", "-q", "render"), ("top", "--once", "--queue", "render", "-n", "1")):
        shown = served.types(*words)
        assert shown.exit_code == 0
        assert shown.stdout.startswith("render is open: 2 waiting, 0 running, no slots.\n")
        assert "[b]k2�" in shown.stdout
        assert ("and 1 more" in shown.stdout) == ("-n" in words)
    found = served.gets("top", "-q", "render")
    assert sorted(found) == ["line", "queue", "running"]
    assert found["queue"]["name"] == "render"
    assert found["running"]["items"] == []
    ids = [job["id"] for job in found["line"]["items"]]
    assert found["line"]["items"][0] == served.gets("show", "-q", "render", ids[0]) | {
        "estimate": found["line"]["items"][0]["estimate"]
    }


def test_an_unknown_queue_and_a_missing_server_are_sentences(served: Terminal) -> None:
    unknown = served.types("top", "-q", "nope")
    assert (unknown.exit_code, unknown.stderr) == (4, "maitred: there is no queue 'nope'\n")
    assert served.types("top", "--server", "127.0.0.1:1").exit_code == 3


async def test_a_server_that_goes_away_for_a_moment_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top, "EVERY", 0.0)
    drawn: list[str] = []
    answers: list[top.Frame | Exception] = [
        frame(),
        ServerUnreachable("gone"),
        frame(),
        UnknownQueue("render"),
    ]

    async def look(*_: object) -> top.Frame:
        answer = answers.pop(0)
        if isinstance(answer, top.Frame):
            return answer
        raise answer

    def show(*_: object, lost: Exception | None, **_how: object) -> str:
        drawn.append(str(lost or ""))
        return ""

    monkeypatch.setattr(top, "look", look)
    monkeypatch.setattr(top, "show", show)
    async with Client("http://x", transport=httpx.MockTransport(lambda _: httpx.Response(500))) as client:
        with pytest.raises(UnknownQueue):
            await asyncio.wait_for(top.look_on(client, "render", 20), 30)
    assert drawn == ["", "gone", ""]


async def test_on_a_terminal_it_is_drawn_anew_until_ctrl_c(house: House) -> None:
    up, address = house.comes_up("up", "--port", "0", "--slots", "0")
    looking, screen = house.shows("top")
    screen.until("nobody")
    async with Client(address) as client:
        submitter = {"type": "user", "id": "1"}
        await client.put("default", {"key": "essay", "submitter": submitter, "run": {"command": ["ls"]}})
    screen.until("essay")
    looking.send_signal(signal.SIGINT)
    assert "Traceback" not in screen.until(r"\x1b\[\?1049l"), "the screen from before is back"
    assert looking.wait(30) == 130
    screen.close()
    house.stops(up)


def test_json_is_one_document() -> None:
    found = frame().document()
    assert found["line"]["items"][0]["class"] == "medium"
    assert found["running"]["items"][0]["elapsed"] == 15.0
