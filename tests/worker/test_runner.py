"""Work that was complete when its stop came is complete."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from maitred.core.job import COMMAND, Lease, Start
from maitred.core.settings import Settings
from maitred.service.handlers import Handlers
from maitred.wire.codec import encode_json
from maitred.worker.outcome import Outcome
from maitred.worker.runner import Runner
from maitred.worker.threads import Threads
from tests.worker.runs import a_run


class Counter:
    """Counts the threads that are stuck."""

    def __init__(self) -> None:
        self.changes: list[int] = []

    def __call__(self, change: int) -> None:
        self.changes.append(change)


def start(need: str, run: dict[str, Any]) -> Start:
    body = encode_json({"key": "k", "run": run})
    return Start(Lease(1, b"t" * 16), "id", 1, 1, need, body, 0, 0)


@pytest.fixture
def stuck() -> Counter:
    return Counter()


@pytest.fixture
async def runner(stuck: Counter) -> AsyncIterator[Runner]:
    async def never() -> int:
        raise AssertionError("nobody awaits it")

    def later() -> Awaitable[int]:
        return never()

    handlers = Handlers()
    handlers.register("quick", lambda: 1)
    handlers.register("later", later)
    runner = Runner(handlers, Settings(), stuck)
    yield runner
    runner.close()


@pytest.fixture
def stopped_at_its_end(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Awaitable[Outcome]]:
    """Run a blocking handler, and stop it in the moment between its end and when that is noticed."""

    async def run(name: str) -> Outcome:
        task = asyncio.create_task(runner.run(a_run(start(f"handler:{name}", {"handler": name}))))
        done = Threads._done

        def ended(*args: Any) -> None:
            done(*args)
            task.cancel()

        monkeypatch.setattr(Threads, "_done", ended)
        return await task

    return run


async def test_a_blocking_handler_that_had_returned_is_complete_and_not_stuck(
    stopped_at_its_end: Callable[[str], Awaitable[Outcome]], stuck: Counter
) -> None:
    assert await stopped_at_its_end("quick") == Outcome("", "", b"1")
    assert stuck.changes == []


async def test_what_a_stopped_handler_has_not_awaited_yet_is_not_begun(
    stopped_at_its_end: Callable[[str], Awaitable[Outcome]], stuck: Counter
) -> None:
    with pytest.raises(asyncio.CancelledError):
        await stopped_at_its_end("later")
    assert stuck.changes == []


@pytest.mark.parametrize(("status", "code"), [(0, ""), (3, "exit")])
async def test_a_command_that_had_ended_by_itself_keeps_its_status(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, status: int, code: str
) -> None:
    wait = asyncio.subprocess.Process.wait
    stops = 1

    async def stopped_at_its_end(process: asyncio.subprocess.Process) -> int:
        nonlocal stops
        ended = await wait(process)
        if stops:
            stops -= 1
            raise asyncio.CancelledError
        return ended

    monkeypatch.setattr(asyncio.subprocess.Process, "wait", stopped_at_its_end)
    outcome = await runner.run(a_run(start(COMMAND, {"command": ["sh", "-c", f"exit {status}"]})))
    assert (outcome.code, stops) == (code, 0)
