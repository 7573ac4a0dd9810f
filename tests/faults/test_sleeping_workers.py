"""A worker that sleeps through its lease has lost it, finds that out, and works on."""

import signal

from maitred.core.job import Phase
from tests.faults.scene import Scene
from tests.waiting import eventually


async def test_a_worker_that_slept_finds_its_lease_lost_and_joins_again(scene: Scene) -> None:
    sleeper = scene.worker(slots=2)
    await scene.put(scene.call("wait", "slept", gate=str(scene.gate)))
    await scene.put(scene.call("wait", "endless", gate="never"))
    await scene.begun(2)
    await scene.confirmed(2)
    other = scene.worker(slots=2)
    await scene.workers(2)
    sleeper.signal(signal.SIGSTOP)
    await scene.begun(2, "endless")
    scene.open_gate()
    [job] = await scene.ended("slept")
    assert [run.code for run in job.timeline] == ["lost", ""]
    sleeper.signal(signal.SIGCONT)

    async def ended_its_work() -> bool:
        return any(line.key == "endless" and line.pid == sleeper.pid for line in scene.lines("cancelled"))

    await eventually(ended_its_work)
    await scene.workers(2)
    [late] = await scene.ended("slept")
    assert late == job, "a late result changes nothing"
    endless = await scene.job("endless")
    assert (endless.phase, endless.attempt) == (Phase.RUNNING, 2)
    await scene.store.cancel("endless", "")
    other.signal(signal.SIGTERM)
    assert await other.ends() == 0
    await scene.put(scene.call("wait", "next"))
    [after] = await scene.ended("next")
    assert scene.lines("begin")[-1].pid == sleeper.pid
    assert after.code == ""
    sleeper.signal(signal.SIGTERM)
    assert await sleeper.ends() == 0
    scene.assert_no_finished_job_ran_again(await scene.is_clean())
