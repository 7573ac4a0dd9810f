"""A worker ends in order, and its jobs outlive it."""

import asyncio
import threading

import pytest

from maitred.core.job import Phase
from maitred.errors import ConfigError
from maitred.worker import Worker, current_job
from tests.waiting import eventually
from tests.worker.conftest import Kitchen


async def test_a_stopping_worker_lets_work_finish_within_the_grace(kitchen: Kitchen) -> None:
    gate = asyncio.Event()

    async def wait() -> str:
        await gate.wait()
        return "done"

    kitchen.handlers.register("wait", wait)
    async with kitchen.worker(slots=1) as worker:
        await kitchen.call("wait")
        await kitchen.until(Phase.RUNNING)
        await kitchen.call("wait", "next")
        worker.stop()
        asyncio.get_running_loop().call_later(0.05, gate.set)
    assert (await kitchen.view()).job.result == b'"done"'
    assert (await kitchen.view("next")).job.attempt == 0
    assert (await kitchen.store.status()).workers == []


async def test_a_stopping_worker_hands_back_the_rest_when_the_grace_is_over(kitchen: Kitchen) -> None:
    async def endless() -> None:
        await asyncio.Event().wait()

    await kitchen.set(grace=0.05)
    kitchen.handlers.register("endless", endless)
    async with kitchen.worker(slots=1):
        await kitchen.call("endless")
        await kitchen.until(Phase.RUNNING)
    job = (await kitchen.view()).job
    assert (job.phase, job.attempt, [run.code for run in job.timeline]) == (Phase.WAITING, 0, ["handed-back"])
    assert (await kitchen.store.status()).workers == []


async def test_a_worker_that_lost_its_lease_ends_the_work_and_joins_again(kitchen: Kitchen) -> None:
    ends: list[str] = []

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ends.append("ended")

    await kitchen.set(lease=1.0, grace=0.01, attempts=1)
    kitchen.handlers.register("endless", endless)
    async with kitchen.worker(slots=1) as worker:
        await kitchen.call("endless")
        await kitchen.until(Phase.RUNNING)
        await kitchen.store.leave(worker.name)
        await kitchen.store.cancel("job", "by hand")

        async def ended() -> bool:
            return bool(ends)

        async def back() -> bool:
            return any(w.slots and not w.draining for w in (await kitchen.store.status()).workers)

        await eventually(ended)
        await eventually(back)


async def test_a_worker_has_a_bounded_number_of_slots(kitchen: Kitchen) -> None:
    with pytest.raises(ConfigError, match="1024"):
        Worker(kitchen.store, kitchen.handlers, 1025)


async def test_a_worker_in_a_hurry_does_not_wait_for_the_grace(kitchen: Kitchen) -> None:
    async def endless() -> None:
        await asyncio.Event().wait()

    await kitchen.set(grace=600.0)
    kitchen.handlers.register("endless", endless)
    async with kitchen.worker(slots=1) as worker:
        await kitchen.call("endless")
        await kitchen.until(Phase.RUNNING)
        worker.stop()
        worker.hurry()
    job = (await kitchen.view()).job
    assert (job.phase, job.attempt, [run.code for run in job.timeline]) == (Phase.WAITING, 0, ["handed-back"])
    assert (await kitchen.store.status()).workers == []


async def test_a_blocking_handler_that_looks_returns_and_keeps_its_slot_on_the_floor(
    kitchen: Kitchen,
) -> None:
    seen: list[bool] = []

    def mind() -> str:
        job = current_job()
        seen.append(job.cancelled)
        seen.append(job.wait_cancelled(60))
        seen.append(job.cancelled)
        return "what was done so far"

    await kitchen.set(time_limit=0.05, kill_after=30.0)
    kitchen.handlers.register("mind", mind)
    async with kitchen.worker(slots=1) as worker:
        await kitchen.call("mind")
        job = await kitchen.ended()
        assert worker.health().stuck == 0
    assert (job.code, job.result, seen) == ("time-limit", b"", [False, True, True])


async def test_a_thread_of_a_coroutine_sees_its_stop_too(kitchen: Kitchen) -> None:
    saw = threading.Event()

    def crunch() -> None:
        if current_job().wait_cancelled(60):
            saw.set()

    async def crunching() -> None:
        await asyncio.to_thread(crunch)

    kitchen.handlers.register("crunching", crunching)
    async with kitchen.worker(slots=1):
        await kitchen.call("crunching")
        await kitchen.until(Phase.RUNNING)
        await kitchen.store.cancel("job", "by hand")
        assert await asyncio.to_thread(saw.wait, 30)


async def test_a_worker_offers_what_fits_when_the_queues_stages_change(kitchen: Kitchen) -> None:
    await kitchen.set(stages=("estimating", "notify"), lease=3.0)
    kitchen.handlers.register_stage("estimating", lambda _job: None)
    kitchen.handlers.register("plain", lambda: "done")
    async with kitchen.worker(slots=1) as worker:

        async def serves(*needs: str) -> bool:
            return [each.serves for each in (await kitchen.store.status()).workers] == [needs]

        await eventually(lambda: serves("stage:estimating"))
        await kitchen.set(stages=("processing",))
        worker.look_again()
        await eventually(lambda: serves("command", "handler:plain"))
        await kitchen.call("plain")
        assert (await kitchen.ended()).result == b'"done"'


async def test_health_tells_what_a_worker_did_last(kitchen: Kitchen) -> None:
    gate = asyncio.Event()
    kitchen.handlers.register("wait", gate.wait)
    worker = Worker(kitchen.store, kitchen.handlers, 2)
    assert worker.health().trouble == "it has not joined yet"
    await kitchen.set(grace=30.0)
    task = asyncio.create_task(worker.run())
    await kitchen.call("wait")
    await kitchen.until(Phase.RUNNING)

    async def busy() -> bool:
        return worker.health().busy == 1

    await eventually(busy)
    assert worker.health().trouble == ""
    worker.stop()
    assert worker.health().trouble == "it is stopping"
    gate.set()
    await task
