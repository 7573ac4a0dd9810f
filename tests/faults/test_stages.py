"""A worker that is killed in the middle of a pipeline: another goes on in the stage where it was."""

import random
import signal
from collections import Counter

import pytest

from maitred.core.job import Order
from maitred.core.stages import INGEST
from maitred.wire.codec import encode_json
from tests.faults.scene import APP, U1, Scene
from tests.faults.turmoil import Turmoil

STAGES = f"""

def note_stage(what, job):
    line = f"{{what}} {{job.key}}@{{job.stage}} {{job.version}} {{os.getpid()}} {{time.time_ns() // 1000}}\\n"
    log = os.open("runs.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(log, line.encode())
    os.close(log)


async def step(job):
    note_stage("begin", job)
    while job.stage == job.args.get("stops_in") and not os.path.exists(job.args["gate"]):
        await asyncio.sleep(0.01)
    note_stage("end", job)
    return (job.data or []) + [job.stage]


for name in {list(INGEST)}:
    q.stage(name)(step)
"""


async def prepared(scene: Scene) -> None:
    (scene.home / "faults_app.py").write_text(APP + STAGES)
    scene.configure(attempts=100, more=f"stages = {list(INGEST)}\n")
    await scene.store.configure(scene.settings)


def ingest(key: str, **args: object) -> Order:
    return Order(key, U1, "stage:estimating", encode_json({"key": key, "run": {"args": args}}))


async def test_b20_a_worker_is_killed_in_downloading_and_another_takes_the_job_there(scene: Scene) -> None:
    await prepared(scene)
    victim = scene.worker()
    await scene.put(ingest("a", stops_in="downloading", gate=str(scene.gate)))
    [begun] = await scene.begun(1, "a@downloading")
    await scene.confirmed(1)
    victim.kill()
    second = scene.worker()
    again = (await scene.begun(2, "a@downloading"))[-1]
    assert (begun.pid, again.pid) == (victim.pid, second.pid)
    job = await scene.job("a")
    assert (job.state(INGEST), job.retries, job.attempt) == ("downloading", 0, 2)
    scene.open_gate()
    [job] = await scene.ended("a")
    assert (job.code, job.retries, job.result) == ("", 0, encode_json(list(INGEST)))
    assert [(run.stage, run.attempt, run.code) for run in job.timeline] == [
        (1, 1, ""),
        (2, 1, ""),
        (3, 1, "lost"),
        (3, 2, ""),
        (4, 1, ""),
        (5, 1, ""),
        (6, 1, ""),
    ]
    assert Counter(line.key for line in scene.lines("begin")) == {
        **{f"a@{stage}": 1 for stage in INGEST},
        "a@downloading": 2,
    }
    second.signal(signal.SIGTERM)
    assert await second.ends() == 0
    await scene.is_clean()


@pytest.mark.parametrize("seed", [1, 2])
async def test_killed_at_any_moment_every_job_goes_through_each_stage_once(scene: Scene, seed: int) -> None:
    await prepared(scene)
    turmoil = Turmoil(scene, random.Random(seed))
    keys = [f"j{n}" for n in range(200)]
    await scene.put(*(ingest(key) for key in keys))
    await turmoil.keep_killing_workers(count=2, slots=4, until=turmoil.clock() + 5)
    jobs = await scene.ended(*keys)
    assert {job.code for job in jobs} == {""}
    for job in jobs:
        assert [run.stage for run in job.timeline if not run.code] == [1, 2, 3, 4, 5, 6], job.id
        assert job.result == encode_json(list(INGEST)), "each stage got what the one before returned"
    await turmoil.stop_workers()
    await scene.is_clean()
