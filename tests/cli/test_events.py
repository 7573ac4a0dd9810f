"""`maitred events` tells what happens in all queues, until it is left."""

import asyncio
import threading
from typing import Any

import pytest

from maitred.cli import telling
from maitred.cli.printing import say
from maitred.client import Client
from maitred.wire import EverythingEvent
from tests.cli.conftest import Terminal


async def play(address: str) -> None:
    """Let a job come and be cancelled."""
    async with Client(address) as client:
        body = {"key": "essay", "submitter": {"type": "user", "id": "ada"}, "run": {"command": ["ls"]}}
        await client.cancel("render", (await client.put("render", body)).id)


def test_all_queues_are_told_of_until_ctrl_c(served: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    address = (served.data / "address").read_text()
    playing = threading.Thread(target=lambda: asyncio.run(play(address)))

    def hear(told: str) -> None:
        say(told)
        if told.startswith("render is open"):
            playing.start()
        if "has ended" in told:
            raise KeyboardInterrupt

    monkeypatch.setattr(telling, "say", hear)
    told = served.types("events")
    playing.join()
    lines = told.stdout.splitlines()
    assert told.exit_code == 130
    assert lines[:2] == [
        "default is open: 0 waiting, 0 running, no slots.",
        "render is open: 0 waiting, 0 running, no slots.",
    ]
    assert "(essay) is pending (waiting)" in told.stdout
    assert "(essay) is failed (cancelled)" in told.stdout
    assert lines[-1].endswith("has ended (cancelled by admin)")


def test_an_event_is_a_line_of_json_too(served: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[EverythingEvent] = []

    def hear(event: Any) -> None:
        heard.append(event)
        raise KeyboardInterrupt

    monkeypatch.setattr(telling, "print_json", hear)
    assert served.types("events", "--json", "--queue", "render", "--event", "queue").exit_code == 130
    assert [event.queue for event in heard] == ["render"]
    wrong = served.types("events", "--event", "noise")
    assert (wrong.exit_code, "--event takes queue, state" in wrong.stderr) == (2, True)
