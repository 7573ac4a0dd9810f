"""Handlers run, fail, time out and are stopped, and the record tells."""

import asyncio
import json
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from maitred.core.job import Message, Order, Phase, Start, Stop
from maitred.wire.codec import encode_json
from maitred.worker import current_job
from tests.waiting import eventually
from tests.worker.conftest import U1, Kitchen


async def test_an_async_handler_is_called_with_its_arguments_and_its_result_is_kept(kitchen: Kitchen) -> None:
    async def add(a: int, b: int) -> dict[str, int]:
        return {"sum": a + b}

    kitchen.handlers.register("add", add)
    async with kitchen.worker():
        await kitchen.call("add", a=1, b=2)
        job = await kitchen.ended()
    assert (job.code, json.loads(job.result)) == ("", {"sum": 3})
    [run] = job.timeline
    assert (run.stage, run.version, run.attempt, run.code) == (1, 1, 1, "")
    assert job.created_at <= run.start <= run.end == job.ended_at


async def test_a_blocking_handler_runs_in_a_thread_and_does_not_block_the_others(kitchen: Kitchen) -> None:
    gate = threading.Event()
    kitchen.handlers.register("wait", lambda: gate.wait(60))
    kitchen.handlers.register("open", gate.set)
    async with kitchen.worker(slots=2):
        await kitchen.call("wait", "first")
        await kitchen.call("open", "second")
        assert (await kitchen.ended("first")).result == b"true"


async def test_a_handler_knows_its_job(kitchen: Kitchen) -> None:
    def whoami() -> list[object]:
        return [current_job().key, current_job().attempt]

    kitchen.handlers.register("whoami", whoami)
    async with kitchen.worker():
        await kitchen.call("whoami", "k-1")
        assert json.loads((await kitchen.ended("k-1")).result) == ["k-1", 1]
    with pytest.raises(LookupError):
        current_job()


@pytest.mark.parametrize("blocking", [True, False])
async def test_a_handler_that_raises_fails_its_job_with_what_it_said(
    kitchen: Kitchen, blocking: bool
) -> None:
    def broken() -> None:
        raise ValueError("no such file")

    async def broken_async() -> None:
        broken()

    kitchen.handlers.register("broken", broken if blocking else broken_async)
    async with kitchen.worker():
        await kitchen.call("broken")
        job = await kitchen.ended()
    assert (job.code, job.message) == ("error", "ValueError: no such file")


async def test_a_handler_that_raises_what_cannot_be_said_still_ends_its_job(kitchen: Kitchen) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError

    async def surrogate() -> None:
        raise ValueError("\ud800 is no character")

    async def mute() -> None:
        raise Mute

    kitchen.handlers.register("surrogate", surrogate)
    kitchen.handlers.register("mute", mute)
    async with kitchen.worker():
        await kitchen.call("surrogate", "one")
        await kitchen.call("mute", "two")
        assert (await kitchen.ended("one")).message == "ValueError: \\ud800 is no character"
        assert (await kitchen.ended("two")).message == "Mute: (it cannot say why)"


async def test_whatever_can_be_awaited_is_a_handler(kitchen: Kitchen) -> None:
    class Adder:
        async def __call__(self, a: int) -> int:
            return a + 1

    async def later(a: int) -> int:
        return a + 2

    kitchen.handlers.register("object", Adder())
    kitchen.handlers.register("wrapped", lambda a: later(a + 0))
    async with kitchen.worker():
        await kitchen.call("object", "one", a=1)
        await kitchen.call("wrapped", "two", a=1)
        assert (await kitchen.ended("one")).result == b"2"
        assert (await kitchen.ended("two")).result == b"3"


async def test_a_timeout_of_the_handlers_own_is_an_error_not_the_time_limit(kitchen: Kitchen) -> None:
    async def slow() -> None:
        raise TimeoutError("the other side")

    kitchen.handlers.register("slow", slow)
    async with kitchen.worker():
        await kitchen.call("slow")
        assert (await kitchen.ended()).code == "error"


async def test_a_result_that_json_cannot_say_is_a_failure(kitchen: Kitchen) -> None:
    kitchen.handlers.register("odd", object)
    async with kitchen.worker():
        await kitchen.call("odd")
        assert (await kitchen.ended()).code == "result"


async def test_an_async_handler_past_its_time_limit_is_cancelled(kitchen: Kitchen) -> None:
    cancelled = asyncio.Event()

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    await kitchen.set(time_limit=0.05)
    kitchen.handlers.register("endless", endless)
    async with kitchen.worker():
        await kitchen.call("endless")
        job = await kitchen.ended()
    assert (job.code, cancelled.is_set()) == ("time-limit", True)


async def test_a_blocking_handler_past_its_limit_keeps_its_slot_off_the_floor(kitchen: Kitchen) -> None:
    gate = threading.Event()
    await kitchen.set(time_limit=0.05)
    kitchen.handlers.register("wait", lambda: gate.wait(60))
    async with kitchen.worker(slots=1):
        await kitchen.call("wait")
        assert (await kitchen.ended()).code == "time-limit"

        async def slots() -> int:
            return sum(worker.slots for worker in (await kitchen.store.status()).workers)

        async def none() -> bool:
            return await slots() == 0

        await eventually(none)
        gate.set()
        assert await eventually(slots) == 1


async def test_cancelling_stops_a_running_handler_and_frees_its_slot(kitchen: Kitchen) -> None:
    async def endless() -> None:
        await asyncio.Event().wait()

    async def quick() -> int:
        return 1

    kitchen.handlers.register("endless", endless)
    kitchen.handlers.register("quick", quick)
    async with kitchen.worker(slots=1):
        await kitchen.call("endless")
        await kitchen.until(Phase.RUNNING)
        await kitchen.call("quick", "next")
        await kitchen.store.cancel("job", "cancelled by ann")
        assert (await kitchen.ended("next")).result == b"1"
    assert (await kitchen.view()).job.code == "cancelled"


async def test_many_jobs_drain_through_few_slots(kitchen: Kitchen) -> None:
    done: list[int] = []

    async def note(n: int) -> None:
        done.append(n)

    kitchen.handlers.register("note", note)
    async with kitchen.worker(slots=3):
        await asyncio.gather(*(kitchen.call("note", f"j{n}", n=n) for n in range(200)))

        async def all_done() -> bool:
            return (await kitchen.store.status()).counts["completed"] == 200

        await eventually(all_done)
    assert sorted(done) == list(range(200))
    assert (await kitchen.store.status()).workers == []


async def test_a_job_starts_when_it_falls_due_without_anybody_asking(kitchen: Kitchen) -> None:
    async def quick() -> int:
        return 1

    kitchen.handlers.register("quick", quick)
    async with kitchen.worker():
        body = encode_json({"key": "job", "run": {"handler": "quick"}})
        await kitchen.store.put([Order("job", U1, "handler:quick", body, delay=200_000)])
        job = await kitchen.ended()
    assert job.timeline[0].start >= job.release


@pytest.mark.parametrize("blocking", [True, False])
async def test_a_handler_that_wants_to_exit_fails_its_job_and_not_the_worker(
    kitchen: Kitchen, blocking: bool
) -> None:
    def leave() -> None:
        sys.exit(3)

    async def leave_async() -> None:
        leave()

    kitchen.handlers.register("leave", leave if blocking else leave_async)
    async with kitchen.worker(slots=1):
        await kitchen.call("leave", "a")
        await kitchen.call("leave", "b")
        assert (await kitchen.ended("a")).message == "SystemExit: 3"
        assert (await kitchen.ended("b")).code == "error"


async def test_a_job_that_is_cancelled_before_its_first_step_gives_its_slot_back(
    kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def endless() -> None:
        await asyncio.Event().wait()

    async def quick() -> int:
        return 1

    kitchen.handlers.register("endless", endless)
    kitchen.handlers.register("quick", quick)
    async with kitchen.worker(slots=1):
        await eventually(lambda: joined(kitchen))
        # Both messages wait in the inbox, so that the worker reads them together.
        monkeypatch.setattr(kitchen.store, "park", both_at_once(kitchen))
        await kitchen.call("quick", "rouse")
        await kitchen.ended("rouse")
        await kitchen.call("endless")
        await kitchen.store.cancel("job", "at once")
        await kitchen.call("quick", "next")
        assert (await kitchen.ended("next")).result == b"1"


async def joined(kitchen: Kitchen) -> bool:
    return bool((await kitchen.store.status()).workers)


def both_at_once(kitchen: Kitchen) -> Callable[[str, float], Coroutine[Any, Any, list[Message]]]:
    """Make a `park` that gives a start out only together with its stop."""
    park = kitchen.store.park
    kept: list[Message] = []

    async def together(name: str, patience: float) -> list[Message]:
        kept.extend(await park(name, patience))
        if any(isinstance(message, Start) and message.id == "job" for message in kept) and not any(
            isinstance(message, Stop) for message in kept
        ):
            return []
        given = kept.copy()
        kept.clear()
        return given

    return together
