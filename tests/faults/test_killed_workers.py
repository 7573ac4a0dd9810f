"""A worker that is killed loses nothing: its jobs come back by their lease and end once, elsewhere."""

import random
import signal

import pytest

from maitred.core.job import Phase
from tests.faults.scene import Command, Scene
from tests.faults.turmoil import Turmoil
from tests.worker.processes import alive


async def test_its_jobs_come_back_at_the_front_and_end_once_on_another_worker(scene: Scene) -> None:
    gate = str(scene.gate)
    victim = scene.worker(slots=3)
    await scene.workers(1)
    await scene.put(scene.call("wait", "a", gate=gate))
    await scene.put(scene.call("block", "b", gate=gate))
    await scene.put(scene.command("c"))
    await scene.put(scene.call("wait", "behind", gate=gate))
    first = await scene.begun(3)
    await scene.confirmed(3)
    victim.kill()
    scene.open_gate()
    await scene.store.pause("test", "until the lease is over")
    scene.worker(slots=1)
    await scene.waiting(4)
    await scene.store.resume()
    jobs = await scene.ended("a", "b", "c", "behind")
    assert [[run.code for run in job.timeline] for job in jobs] == [["lost", ""]] * 3 + [[""]]
    assert [job.attempt for job in jobs] == [2, 2, 2, 1]
    again = scene.lines("begin")[len(first) :]
    assert [line.key for line in again] == ["a", "b", "c", "behind"], "as they had started, before all others"
    assert [line.key for line in scene.lines("end")] == ["a", "b", "c", "behind"], "each ends once"
    children = [int(pid) for pid in (scene.home / "runs.log.children").read_text().split()]
    assert [pid for pid in children if alive(pid)] == [], "what the killed worker's program started is gone"
    scene.commands[1].signal(signal.SIGTERM)
    assert await scene.commands[1].ends() == 0
    scene.assert_no_finished_job_ran_again(await scene.is_clean())


async def test_past_its_attempts_a_job_is_failed_and_visible(scene: Scene) -> None:
    scene.configure(attempts=2)
    await scene.store.configure(scene.settings)
    await scene.put(scene.call("wait", "deadly", gate=str(scene.gate)))
    for turn in (1, 2):
        victim = scene.worker()
        await scene.begun(turn)
        await scene.confirmed(1)
        victim.kill()
    bystander = scene.worker()
    [job] = await scene.ended("deadly")
    assert (job.code, job.message, job.attempt) == ("attempts", "lost with its worker 2 times", 2)
    assert len(scene.lines("begin")) == 2
    bystander.signal(signal.SIGTERM)
    assert await bystander.ends() == 0
    await scene.is_clean()


@pytest.mark.parametrize("seed", [1, 2])
async def test_killed_at_any_moment_no_job_is_lost_and_no_finished_one_runs_again(
    scene: Scene, seed: int
) -> None:
    turmoil = Turmoil(scene, random.Random(seed))
    keys = [f"j{n}" for n in range(400)]
    await scene.put(*(scene.call("wait", key, seconds=0.004) for key in keys))
    await turmoil.keep_killing_workers(count=2, slots=8, until=turmoil.clock() + 6)
    jobs = await scene.ended(*keys)
    assert {job.code for job in jobs} == {""}
    await turmoil.stop_workers()
    state = await scene.is_clean()
    scene.assert_no_finished_job_ran_again(state)


async def test_an_orderly_stop_finishes_what_it_can_and_hands_back_the_rest_unspent(scene: Scene) -> None:
    first: Command = scene.worker(slots=2)
    await scene.put(scene.call("wait", "short", gate=str(scene.gate)))
    await scene.put(scene.call("wait", "long", gate="never"))
    await scene.begun(2)
    second = scene.worker(slots=2)
    await scene.workers(2)
    first.signal(signal.SIGTERM)
    scene.open_gate()
    [short] = await scene.ended("short")
    assert short.attempt == 1
    assert await first.ends() == 0
    again = (await scene.begun(2, "long"))[-1]
    long = await scene.job("long")
    assert (again.pid, long.phase, long.attempt) == (second.pid, Phase.RUNNING, 1)
    assert [run.code for run in long.timeline] == ["handed-back"]
    handed_back = long.timeline[0].end
    assert again.at - handed_back < scene.settings.lease / 2, "at once, and not when a lease is over"
    await scene.store.cancel("long", "")
    second.signal(signal.SIGTERM)
    assert await second.ends() == 0
    scene.assert_no_finished_job_ran_again(await scene.is_clean())
