"""Nothing is left of the programs of a worker that is killed."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

import maitred
from maitred.worker.tree import MARK
from maitred.worker.undertaker import Undertaker
from tests.waiting import eventually
from tests.worker.cells import KINDS, host_of
from tests.worker.processes import running, unlikely_nap

WORKER = """
import asyncio, sys
from tests.worker.cells import Cell
from maitred.worker.undertaker import Undertaker

async def work():
    cell = Cell(sys.argv[1], Undertaker())
    async with cell.with_settings().room() as room:
        print(room.home.parent, flush=True)
        await room.run(["sh", "-c", sys.argv[2]])

asyncio.run(work())
"""


@pytest.mark.parametrize("kind", KINDS)
async def test_what_a_killed_worker_ran_is_ended_and_removed(kind: str) -> None:
    host_of(kind)
    nap = unlikely_nap()
    script = (
        f"mkdir -p locked/in && chmod 000 locked; (setsid sh -c 'sleep {nap} & wait' &); exec sleep {nap}"
    )
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(maitred.__file__).parents[1]), str(Path.cwd())]),
    }
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WORKER, kind, script, stdout=asyncio.subprocess.PIPE, env=env
    )
    assert worker.stdout
    place = Path((await worker.stdout.readline()).decode().strip())

    async def naps() -> bool:
        return running(nap)

    async def all_is_gone() -> bool:
        return not running(nap) and not list(place.parent.glob(place.name))

    await eventually(naps)
    worker.kill()
    await worker.wait()
    await eventually(all_is_gone)


async def test_a_program_is_found_by_its_mark_if_its_worker_died_before_it_knew_who_leads(
    tmp_path: Path,
) -> None:
    nap = unlikely_nap()
    place = tmp_path / "room"
    place.mkdir()
    program = await asyncio.create_subprocess_exec(
        "sleep", nap, env={**os.environ, MARK: place.name}, start_new_session=True
    )
    undertaker = Undertaker()
    undertaker.expect(place)
    undertaker.close()
    assert await program.wait() == -signal.SIGKILL
    assert not place.exists()
