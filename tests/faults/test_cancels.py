"""Cancels over HTTP and the command line reach what runs in another process."""

import contextlib
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest

from maitred.client import Client
from maitred.wire import JobDocument
from tests.faults.scene import QUEUE, Command, Scene
from tests.faults.test_lost_stores import address_of
from tests.faults.test_signals import DEAF
from tests.waiting import eventually


class Desk:
    """A server and a worker with one slot, each a process."""

    def __init__(self, scene: Scene, worker: Command, client: Client) -> None:
        self.scene, self.worker, self.client = scene, worker, client

    async def runs(self, **run: Any) -> JobDocument:
        """Submit a job and wait until it has begun."""
        body = {"key": "job", "submitter": {"type": "user", "id": "7"}, "run": run}
        job = await self.client.put(QUEUE, body)
        await self.scene.begun(1)
        return job

    async def slots(self, slots: int, busy: int = 0) -> None:
        """Wait until the worker has so many slots on the floor."""

        async def look() -> bool:
            return [(w.slots, w.busy) for w in (await self.scene.store.status()).workers] == [(slots, busy)]

        await eventually(look)


@pytest.fixture
async def desk(scene: Scene) -> AsyncIterator[Desk]:
    worker = scene.worker(slots=1)
    server = scene.starts("serve", "--store", scene.server.url, "--port", "0")
    async with Client(await address_of(server)) as client:
        await scene.workers(1)
        yield Desk(scene, worker, client)
    for command in (worker, server):
        command.signal(signal.SIGTERM)
        assert await command.ends() == 0
        assert "Traceback" not in command.errors
    await scene.is_clean()


def lives(pid: int) -> bool:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123 - one word of it
        return ") Z " not in stat.read()
    return False


async def test_a_cancelled_program_gets_sigterm_and_its_whole_group_is_killed(desk: Desk) -> None:
    script = DEAF.format(key="job", log=desk.scene.log)
    job = await desk.runs(command=["sh", "-c", script])
    [begun] = desk.scene.lines("begin")
    child = int((desk.scene.home / "runs.log.children").read_text())
    assert lives(begun.pid)
    assert lives(child)
    told = await desk.client.cancel(QUEUE, job.id, "wrong branch")
    assert (told.state, told.code) == ("failed", "cancelled")
    await desk.slots(1)
    assert desk.scene.lines("term"), "it was asked first"
    assert not lives(begun.pid)
    assert not lives(child)
    ended = await desk.client.job(QUEUE, job.id)
    assert (ended.code, ended.message) == ("cancelled", told.message)
    assert ended.message
    assert ended.message.endswith(": wrong branch")
    assert ended.message.startswith("cancelled by ")
    assert [run.code for run in ended.timeline] == ["cancelled"]


async def test_a_cancelled_coroutine_gets_cancelled_error(desk: Desk) -> None:
    job = await desk.runs(handler="wait", args={"gate": str(desk.scene.gate)})
    await desk.client.cancel(QUEUE, job.id)
    await desk.slots(1)
    assert desk.scene.lines("cancelled")


async def test_a_function_that_blocks_can_see_that_it_is_cancelled(desk: Desk) -> None:
    job = await desk.runs(handler="mind")
    await desk.client.cancel(QUEUE, job.id)
    await desk.slots(1)
    assert desk.scene.lines("cancelled")
    assert not desk.scene.lines("end")


async def test_the_slot_of_a_function_that_does_not_look_stays_off_the_floor(desk: Desk) -> None:
    job = await desk.runs(handler="block", args={"gate": str(desk.scene.gate)})
    await desk.client.cancel(QUEUE, job.id)
    await desk.slots(0)
    assert not desk.scene.lines("end")
    desk.scene.open_gate()
    await desk.slots(1)
    assert desk.scene.lines("end")


async def test_the_command_line_cancels_with_a_reason(desk: Desk) -> None:
    job = await desk.runs(handler="mind")
    cancel = desk.scene.starts("cancel", job.id, "--reason", "too late")
    assert await cancel.ends() == 0, cancel.errors
    ended = await desk.client.job(QUEUE, job.id)
    assert (ended.code, (ended.message or "").partition(": ")[2]) == ("cancelled", "too late")
    await desk.slots(1)
    assert desk.scene.lines("cancelled")
