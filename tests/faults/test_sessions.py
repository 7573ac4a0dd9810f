"""Sessions whose server, worker or store is killed."""

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from maitred.core.job import Phase
from tests.faults.scene import QUEUE, Command, Scene
from tests.sessions.parlour import ANN, Guest
from tests.waiting import eventually

CONFIG = """
[queues.default]
lease = "{lease}"
grace = "1s"
kill_after = "100ms"
"""
CAT = "stty raw -echo; echo go; exec cat"


@asynccontextmanager
async def opened(home: Path, lease: str) -> AsyncIterator[Scene]:
    scene = Scene(home)
    (home / "maitred.toml").write_text(CONFIG.format(lease=lease))
    async with scene:
        yield scene


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with opened(tmp_path, "2s") as scene:
        yield scene


async def served(scene: Scene) -> tuple[Command, str]:
    """Start a server; give it and the address of its sessions."""
    command = scene.starts("serve", "--port", "0", "--store", scene.server.url)
    ready = await command.says("ready")
    return command, f"ws{ready.partition(' http')[2]}/api/v1/queues/{QUEUE}/interactive"


@asynccontextmanager
async def sitting(url: str, *command: str) -> AsyncIterator[Guest]:
    """Open a session."""
    async with connect(url, max_size=None) as connection:
        guest = Guest(connection)
        await guest.says({"submitter": ANN, "command": command})
        await guest.status("started")
        yield guest


async def test_a_session_outlives_its_server_and_nothing_of_it_is_lost_or_twice(scene: Scene) -> None:
    worker = scene.worker()
    await scene.workers(1)
    first, url = await served(scene)
    _, other = await served(scene)
    async with sitting(url, "sh", "-c", CAT) as guest:
        await guest.until("go\n")
        await guest.types("before\n")
        await guest.until("before\n")
        first.kill()
        assert await guest.closed() == 1006
    async with connect(other) as connection:
        again = Guest(connection)
        await again.says({"session": guest.told[0]["session"], "received": len(guest.shown)})
        await again.status("started")
        await again.types("after\n")
        await again.until("after\n")
        assert guest.shown + again.shown == b"go\nbefore\nafter\n"
        # Interrupts do nothing in a raw terminal; leaving it is up to whoever cancels the job.
        await scene.store.cancel(again.told[0]["id"], "cancelled by ann")
        assert (await again.status("ended"))["code"] == "cancelled"
    worker.signal(signal.SIGTERM)
    assert await worker.ends() == 0
    await scene.is_clean()


async def test_a_killed_worker_halts_its_sessions_and_leaves_nothing_of_them(scene: Scene) -> None:
    worker = scene.worker()
    await scene.workers(1)
    _, url = await served(scene)
    async with sitting(url, "sh", "-c", f"sleep 1000 & {CAT}") as guest:
        await guest.until("go\n")
        worker.kill()
        ended = await guest.status("ended")
        assert (ended["code"], ended["exit"]) == ("halted", None)
    job = await scene.job(guest.told[0]["id"])
    assert (job.phase, job.code) == (Phase.ENDED, "halted")
    await scene.is_clean()


async def test_a_session_goes_on_when_its_store_was_killed_and_came_back(tmp_path: Path) -> None:
    async with opened(tmp_path, "30s") as scene:
        scene.worker()
        await scene.workers(1)
        _, url = await served(scene)
        async with sitting(url, "sh", "-c", CAT) as guest:
            await guest.until("go\n")
            scene.server.kill()
            for word in ("one", "two", "three"):
                await guest.types(f"{word}\n")
            await scene.server.start()
            await guest.until("three\n")
            assert guest.shown == b"go\none\ntwo\nthree\n"

            async def is_told_to_end() -> bool:
                await scene.store.cancel(guest.told[0]["id"], "cancelled by ann")
                return True

            await eventually(is_told_to_end)
            assert (await guest.status("ended"))["code"] == "cancelled"
