"""A worker ends in order, and its jobs outlive it."""

import asyncio

import pytest

from maitred.core.job import Phase
from maitred.errors import ConfigError
from maitred.worker import Worker
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
