"""Connections break anywhere: in the middle of a command, of an answer, or without a word."""

import asyncio
import contextlib
import random
import signal

import pytest

from maitred.address import Site
from maitred.core.job import Put
from maitred.errors import StoreUnavailable
from maitred.store.valkey.connection import Connection
from maitred.store.valkey.store import ValkeyStores
from tests.closing import closing
from tests.faults.cutting import Cutter
from tests.faults.scene import Scene


@pytest.mark.parametrize("seed", [1, 2])
async def test_cut_at_any_byte_nothing_is_lost_and_nothing_runs_twice(scene: Scene, seed: int) -> None:
    async with Cutter(scene.server.socket, random.Random(seed), longest=40_000) as cutter:
        workers = [scene.worker(slots=4, url=cutter.url) for _ in range(2)]
        await asyncio.gather(*(worker.says("Working") for worker in workers))
        async with closing(ValkeyStores(cutter.url)) as stores:
            store = stores.queue("default")
            for n in range(300):
                order = scene.call("wait", f"j{n}", seconds=0.01)
                while True:
                    try:
                        assert isinstance((await store.put([order]))[0], Put)
                        break
                    except StoreUnavailable:
                        continue
        await scene.ended(*(f"j{n}" for n in range(300)))
        cutter.longest = None
        for worker in workers:
            worker.signal(signal.SIGTERM)
            assert await worker.ends() == 0, worker.errors
    assert cutter.cuts > 5
    state = await scene.is_clean()
    scene.assert_no_finished_job_ran_again(state)
    begun = [(line.key, line.version) for line in scene.lines("begin")]
    handed_back = sum(run.code != "" for job in state.jobs.values() for run in job.timeline)
    assert len(begun) <= len(set(begun)) + handed_back, "run twice without a lost lease in between"


async def test_renewing_delivers_a_start_that_was_lost_with_its_connection(scene: Scene) -> None:
    async with Cutter(scene.server.socket, random.Random(0)) as cutter:
        worker = scene.worker(url=cutter.url)
        await scene.workers(1)
        cutter.swallow = True
        await scene.put(scene.call("wait", "missed"))
        [job] = await scene.ended("missed")
        assert (job.attempt, cutter.swallowed) == (1, 1)
        assert [run.code for run in job.timeline] == [""], "delivered again under the same lease"
        worker.signal(signal.SIGTERM)
        assert await worker.ends() == 0
    scene.assert_no_finished_job_ran_again(await scene.is_clean())


async def test_a_connection_that_falls_silent_is_given_up_and_made_anew(scene: Scene) -> None:
    async with Cutter(scene.server.socket, random.Random(0)) as cutter:
        with contextlib.closing(Connection(Site.read(cutter.url).server, patience=0.1)) as connection:
            assert await connection.call("PING") == b"PONG"
            cutter.awake.clear()
            with pytest.raises(StoreUnavailable):
                await connection.call("PING")
            cutter.awake.set()
            assert await connection.call("PING") == b"PONG"


async def test_all_who_wait_for_a_connection_are_refused_together(scene: Scene) -> None:
    scene.server.kill()
    with contextlib.closing(Connection(Site.read(scene.server.url).server)) as connection:
        answers = await asyncio.gather(*(connection.call("PING") for _ in range(50)), return_exceptions=True)
        assert {type(answer) for answer in answers} == {StoreUnavailable}
        await scene.server.start()
        assert await connection.call("PING") == b"PONG"


async def test_a_server_that_hangs_up_at_once_refuses_the_call_and_does_not_let_it_wait(scene: Scene) -> None:
    async with Cutter(scene.server.socket, random.Random(0)) as cutter:
        scene.server.kill()
        for _ in range(20):
            connection = Connection(Site.read(cutter.url).server, patience=None)
            with contextlib.closing(connection), pytest.raises(StoreUnavailable):
                await asyncio.wait_for(connection.call("PING"), 10)
