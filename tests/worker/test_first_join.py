"""A worker that begins while the store is away waits for it; what waiting does not heal ends it."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from maitred.errors import MaitredError, SchemaMismatch, StoreUnavailable, UnknownQueue
from maitred.worker import Worker
from tests.worker.conftest import Kitchen
from tests.working import at_work

VERBS = ("status", "join")


@pytest.fixture(params=["memory"])
def kind(request: pytest.FixtureRequest) -> str:
    """One store is enough: it is made to fail."""
    return str(request.param)


def failing(
    kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch, verb: str, error: MaitredError, times: float
) -> asyncio.Event:
    """Let a verb fail so many times; gives an event for when it has failed twice."""
    real, failed_twice, failures = getattr(kitchen.store, verb), asyncio.Event(), 0

    async def call(*args: Any) -> Any:
        nonlocal failures
        if failures < times:
            failures += 1
            if failures == 2:
                failed_twice.set()
            raise error
        return await real(*args)

    monkeypatch.setattr(kitchen.store, verb, call)
    return failed_twice


@pytest.mark.parametrize("verb", VERBS)
async def test_a_store_that_is_away_is_waited_for_and_told_once(
    kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    async def quick() -> int:
        return 1

    kitchen.handlers.register("quick", quick)
    failing(kitchen, monkeypatch, verb, StoreUnavailable("gone"), times=3)
    with capture_logs() as logs:
        async with at_work(Worker(kitchen.store, kitchen.handlers, 1)):
            await kitchen.call("quick")
            await kitchen.ended()
    assert [entry["event"] for entry in logs if entry["log_level"] == "warning"] == [
        "the store does not answer"
    ]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("error", [UnknownQueue("q"), SchemaMismatch("written by 9")], ids=str)
async def test_what_waiting_does_not_heal_is_raised(
    kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch, verb: str, error: MaitredError
) -> None:
    failing(kitchen, monkeypatch, verb, error, times=1)
    with pytest.raises(type(error), match=str(error)):
        await Worker(kitchen.store, kitchen.handlers, 1).run()


@pytest.mark.parametrize("verb", VERBS)
async def test_a_worker_that_waits_for_the_store_can_be_stopped(
    kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    failed_twice = failing(kitchen, monkeypatch, verb, StoreUnavailable("gone"), times=float("inf"))
    async with at_work(Worker(kitchen.store, kitchen.handlers, 1)):
        await failed_twice.wait()
