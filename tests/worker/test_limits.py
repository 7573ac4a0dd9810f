"""Every job has a time limit of its own, which may be lowered, and is stopped with a reason that is told."""

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from maitred.core.job import Finish, Job, Phase
from maitred.service.host import this_host
from maitred.store.memory import MemoryStore
from maitred.store.port import Store
from tests.waiting import eventually
from tests.worker.conftest import Kitchen
from tests.worker.granting import Granting, micros
from tests.worker.processes import alive, has_members

KINDS = ("async", "blocking", "command")
HOUR = 3600.0


@dataclass
class Work:
    """Work of one kind that does not end by itself, with a note when it has begun."""

    kitchen: Kitchen
    store: Granting
    note: Path
    gate: threading.Event

    async def begin(self, kind: str, granted: float = HOUR, id: str = "job") -> None:
        self.store.granted[id] = granted
        if kind == "command":
            await self.kitchen.command("sh", "-c", f"echo so far; echo $$ > {self.note}; sleep 300", id=id)
        else:
            await self.kitchen.call(kind, id)

    async def begun(self) -> None:
        await eventually(self._noted)

    async def _noted(self) -> bool:
        return self.note.exists() and self.note.read_text().endswith("\n")


@pytest.fixture
def store(queue_name: str) -> Store:
    return cast(Store, Granting(MemoryStore(queue_name)))


@pytest.fixture
async def work(kitchen: Kitchen, tmp_path: Path) -> Work:
    note, gate = tmp_path / "begun", threading.Event()

    async def endless() -> None:
        note.write_text("\n")
        await asyncio.Event().wait()

    def blocking() -> None:
        note.write_text("\n")
        gate.wait(60)

    kitchen.handlers.register("async", endless)
    kitchen.handlers.register("blocking", blocking)
    await kitchen.set(kill_after=0.1)
    # Its commands leave notes for the test outside of their room.
    kitchen.host = this_host().plain()
    return Work(kitchen, cast(Granting, kitchen.store), note, gate)


def took(job: Job) -> int:
    [run] = job.timeline
    return run.end - run.start


@pytest.mark.parametrize("kind", KINDS)
async def test_a_job_is_stopped_at_its_own_limit_and_not_at_the_queues(work: Work, kind: str) -> None:
    async with work.kitchen.worker():
        await work.begin(kind, granted=0.2)
        job = await work.kitchen.ended()
        work.gate.set()
    assert (job.code, job.message) == ("time-limit", "it ran longer than its time limit of 0.2 s")
    assert took(job) >= micros(0.2), "never short of its limit"


async def test_a_job_that_was_granted_nothing_has_the_queues_limit(work: Work) -> None:
    await work.kitchen.set(time_limit=0.1)
    async with work.kitchen.worker():
        await work.begin("async", granted=0)
        assert (await work.kitchen.ended()).message == "it ran longer than its time limit of 0.1 s"


async def test_a_short_limit_is_kept_among_long_ones(work: Work) -> None:
    async with work.kitchen.worker(slots=3):
        await work.begin("async", granted=HOUR, id="long")
        await work.begin("async", granted=0.05, id="short")
        await work.begin("async", granted=0.1, id="middle")
        short, middle = await work.kitchen.ended("short"), await work.kitchen.ended("middle")
        assert (short.code, middle.code) == ("time-limit", "time-limit")
        assert took(middle) >= micros(0.1)
        assert (await work.kitchen.view("long")).job.phase is Phase.RUNNING
        work.store.stop("long", "cancelled")
        assert (await work.kitchen.ended("long")).code == "cancelled"


STOPS = [
    ("cut", 10.0, "time limit 10 s: cut so that a waiting job could start"),
    ("cut", 0.0, "cut so that a waiting job could start"),
    ("halted", 0.0, "halted so that a waiting job could start"),
    ("time-limit", 5.0, "it ran longer than its time limit of 5 s"),
    ("cancelled", 0.0, "it was cancelled"),
    ("deleted", 0.0, "it was deleted"),
]


@pytest.mark.parametrize(("code", "limit", "sentence"), STOPS)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_stop_is_told_with_its_code_and_a_sentence(
    work: Work, kind: str, code: str, limit: float, sentence: str
) -> None:
    async with work.kitchen.worker():
        await work.begin(kind)
        await work.begun()
        work.store.stop("job", code, limit)
        job = await work.kitchen.ended()
        work.gate.set()
    assert (job.code, job.message) == (code, sentence)
    if kind == "command":
        assert json.loads(job.result) == {"exit": -15, "stdout": "so far\n", "stderr": ""}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_lowered_limit_that_is_past_stops_at_once(work: Work, kind: str) -> None:
    async with work.kitchen.worker():
        await work.begin(kind)
        await work.begun()
        work.store.lower("job", 0.001, "cut")
        job = await work.kitchen.ended()
        work.gate.set()
    assert (job.code, job.message) == ("cut", "time limit 0.001 s: cut so that a waiting job could start")
    if kind == "command":
        assert json.loads(job.result)["stdout"] == "so far\n"


@pytest.mark.parametrize("code", ["cut", "time-limit"])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_lowered_limit_is_kept_and_its_code_is_told(work: Work, kind: str, code: str) -> None:
    async with work.kitchen.worker():
        await work.begin(kind)
        await work.begun()
        duration = work.store.lower_from_now("job", 0.2, code)
        job = await work.kitchen.ended()
        work.gate.set()
    assert job.code == code
    assert took(job) >= duration, "never short of what is left to it"


async def test_work_that_ends_before_its_lowered_limit_is_complete(work: Work) -> None:
    done = asyncio.Event()

    async def wait() -> int:
        work.note.write_text("\n")
        await done.wait()
        return 1

    work.kitchen.handlers.register("wait", wait)
    async with work.kitchen.worker():
        await work.begin("wait")
        await work.begun()
        work.store.lower_from_now("job", 60, "cut")
        done.set()
        assert (await work.kitchen.ended()).result == b"1"


async def test_a_command_that_ends_well_when_it_is_asked_to_was_stopped_all_the_same(work: Work) -> None:
    script = f"trap 'echo bye; exit 0' TERM; echo > {work.note}; while :; do sleep 0.01; done"
    await work.kitchen.set(kill_after=10.0)
    async with work.kitchen.worker():
        await work.kitchen.command("sh", "-c", script)
        await work.begun()
        work.store.stop("job", "cut")
        job = await work.kitchen.ended()
    result = json.loads(job.result)
    assert (job.code, result["exit"], result["stdout"]) == ("cut", 0, "bye\n")


async def test_a_handler_that_fails_in_being_stopped_was_stopped(work: Work) -> None:
    async def clumsy() -> None:
        work.note.write_text("\n")
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("while tidying up")

    work.kitchen.handlers.register("clumsy", clumsy)
    async with work.kitchen.worker():
        await work.begin("clumsy")
        await work.begun()
        work.store.stop("job", "halted")
        assert (await work.kitchen.ended()).code == "halted"


async def test_a_handler_that_ends_its_work_when_it_is_stopped_is_complete(work: Work) -> None:
    async def careful() -> str:
        work.note.write_text("\n")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "saved"
        return "never"

    work.kitchen.handlers.register("careful", careful)
    async with work.kitchen.worker():
        await work.begin("careful")
        await work.begun()
        work.store.stop("job", "cut")
        job = await work.kitchen.ended()
    assert (job.code, job.result) == ("", b'"saved"')


async def test_a_timeout_of_the_handlers_own_does_not_hide_a_stop(work: Work) -> None:
    tidying = asyncio.Event()

    async def slow() -> None:
        async with asyncio.timeout(0):
            try:
                await asyncio.Event().wait()
            finally:
                tidying.set()
                await asyncio.Event().wait()

    work.kitchen.handlers.register("slow", slow)
    async with work.kitchen.worker():
        await work.begin("slow")
        await tidying.wait()
        work.store.stop("job", "cut")
        assert (await work.kitchen.ended()).code == "cut"


ENDS: list[Callable[[Granting], object]] = [
    lambda store: store.stop("job", "cut", 10),
    lambda store: store.lower("job", 0.001, "cut"),
    lambda store: store.lower_from_now("job", 0.1, "time-limit"),
]


@pytest.mark.parametrize("end", ENDS, ids=["stopped", "lowered", "late"])
async def test_the_whole_group_is_gone_before_the_slot_is_free(
    work: Work, end: Callable[[Granting], object]
) -> None:
    """F23: a child that ignores SIGTERM and forked."""
    note = work.note
    script = f"""
        trap '' TERM
        (trap '' TERM; sh -c 'echo $$ >> {note}.pids; exec sleep 300' & exec sleep 300) &
        echo "$! $$" >> {note}.pids
        until [ "$(wc -w < {note}.pids)" = 3 ]; do sleep 0.01; done
        mv {note}.pids {note}
        sleep 300
    """
    left: list[list[int]] = []

    def look(_: Finish) -> None:
        left.append([int(pid) for pid in note.read_text().split() if alive(int(pid))])

    work.store.heard = look
    async with work.kitchen.worker():
        await work.kitchen.command("sh", "-c", script)
        await work.begun()
        assert len(note.read_text().split()) == 3
        end(work.store)
        job = await work.kitchen.ended()
    assert job.code in ("cut", "time-limit")
    assert left == [[]]


@pytest.mark.parametrize("end", ENDS, ids=["stopped", "lowered", "late"])
async def test_a_blocking_handler_that_outlives_its_stop_keeps_its_slot_off_the_floor(
    work: Work, end: Callable[[Granting], object]
) -> None:
    async def slots() -> list[int]:
        return [worker.slots for worker in (await work.kitchen.store.status()).workers]

    async def one_is_off() -> bool:
        return await slots() == [1]

    async def all_are_back() -> bool:
        return await slots() == [2]

    async with work.kitchen.worker(slots=2):
        await work.begin("blocking")
        await work.begun()
        end(work.store)
        assert (await work.kitchen.ended()).code in ("cut", "time-limit")
        await eventually(one_is_off)
        work.gate.set()
        await eventually(all_are_back)


async def test_a_blocking_handler_is_off_the_floor_before_its_stop_is_confirmed(work: Work) -> None:
    seen: list[int] = []

    def look(_: Finish) -> None:
        [worker] = work.store._house.floor.workers.values()
        seen.append(worker.slots)

    work.store.heard = look
    async with work.kitchen.worker(slots=1):
        await work.begin("blocking")
        await work.begun()
        work.store.stop("job", "cut", 3)
        await work.kitchen.ended()
        work.gate.set()
    assert seen == [0]


async def test_what_is_being_stopped_when_the_worker_ends_is_told_and_not_handed_back(work: Work) -> None:
    tidying, tidy = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            tidying.set()
            await tidy.wait()

    work.kitchen.handlers.register("slow", slow)
    await work.kitchen.set(grace=0.01)
    async with work.kitchen.worker():
        await work.begin("slow", granted=0.05)
        await tidying.wait()
        asyncio.get_running_loop().call_later(0.1, tidy.set)
    assert (await work.kitchen.view()).job.code == "time-limit"


async def test_a_stop_that_comes_while_a_program_is_started_leaves_nothing_of_it(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []
    create = asyncio.create_subprocess_exec

    async def slowly(*argv: str, **more: object) -> asyncio.subprocess.Process:
        process = await create(*argv, **more)  # type: ignore[arg-type]
        started.append(process.pid)
        work.store.stop("job", "cut")
        await eventually(heard)
        return process

    async def heard() -> bool:
        return any(run.why for run in worker._in_hand.runs.values())

    monkeypatch.setattr(asyncio, "create_subprocess_exec", slowly)
    async with work.kitchen.worker() as worker:
        await work.begin("command")
        assert (await work.kitchen.ended()).code == "cut"
    assert len(started) == 1
    assert not has_members(started[0])
