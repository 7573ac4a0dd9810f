"""The Floor with real processes: a server that is killed, and programs that do not want to stop."""

import signal

from tests.faults.scene import Scene
from tests.waiting import eventually
from tests.worker.processes import alive

CLASSES = """
[queues.default.classes]
fast = {cap = "200ms"}
slow = {cap = "60s", limit = "50%"}
"""

# It forked, it ignores SIGTERM, and so does its child.
STUBBORN = """
trap '' TERM
(trap '' TERM; while true; do sleep 1; done) &
echo $! >> {log}.children
echo $$ >> {log}.children
echo "begin stubborn 1 $$ $(date +%s%N | sed 's/...$//')" >> {log}
while true; do sleep 1; done
"""


async def test_f22_a_server_that_is_killed_and_comes_back_starts_no_fifth_job(scene: Scene) -> None:
    gate = str(scene.gate)
    worker = scene.worker(slots=4)
    server = scene.starts("serve", "--store", scene.server.url, "--port", "0")
    await server.says("ready")
    await scene.workers(1)
    await scene.put(*(scene.call("wait", f"j{number}", gate=gate) for number in range(5)))
    await scene.begun(4)
    server.kill()
    again = scene.starts("serve", "--store", scene.server.url, "--port", "0")
    await again.says("ready")
    await scene.store.tick()
    assert len(scene.lines("begin")) == 4
    assert (await scene.store.status()).waiting == 1
    scene.open_gate()
    await scene.ended(*(f"j{number}" for number in range(5)))
    lines = scene.lines("begin", "end")
    fifth = [line.what for line in sorted(lines, key=lambda line: line.at)].index("end")
    assert fifth == 4, "the fifth begins after one has ended"
    for command in (worker, again):
        command.signal(signal.SIGTERM)
        assert await command.ends() == 0


async def test_f23_the_whole_group_is_gone_before_another_job_has_the_slot(scene: Scene) -> None:
    scene.configure(100, CLASSES)
    await scene.store.configure(scene.settings)
    worker = scene.worker(slots=1)
    await scene.workers(1)
    await scene.put(scene.program("stubborn", STUBBORN.format(log=scene.log)))
    await scene.begun(1)
    await scene.put(scene.call("look", "next", level=1, children=f"{scene.log}.children"))
    [cut, following] = await scene.ended("stubborn", "next")
    assert (cut.code, following.code) == ("cut", "")
    assert "time limit 0.2 s" in cut.message
    assert following.result == b"[]", "processes that still lived when the next job had the slot"
    children = [int(pid) for pid in (scene.home / "runs.log.children").read_text().split()]
    assert len(children) == 2
    assert [pid for pid in children if alive(pid)] == []
    worker.signal(signal.SIGTERM)
    assert await worker.ends() == 0
    await scene.is_clean()


async def test_an_elastic_job_of_a_killed_worker_runs_again_and_is_cut_on_the_next(scene: Scene) -> None:
    scene.configure(100, CLASSES)
    await scene.store.configure(scene.settings)
    victim = scene.worker(slots=1)
    await scene.put(scene.call("wait", "elastic", gate=str(scene.gate)))
    await scene.begun(1)
    await scene.confirmed(1)
    victim.kill()
    worker = scene.worker(slots=1)
    await scene.begun(2)
    await scene.put(scene.call("wait", "fast", level=1))
    [elastic, fast] = await scene.ended("elastic", "fast")
    assert ([run.code for run in elastic.timeline], fast.code) == (["lost", "cut"], "")
    worker.signal(signal.SIGTERM)
    assert await worker.ends() == 0

    async def quiet() -> bool:
        return (await scene.store.status()).used == (0, 0)

    await eventually(quiet)
    await scene.is_clean()
