"""The metrics of a worker alone, while its store comes and goes."""

import re
import signal

import httpx

from tests.faults.scene import Scene
from tests.metrics.readings import Readings


async def test_a_worker_alone_tells_of_its_slots_and_runs(scene: Scene) -> None:
    worker = scene.worker(2, None, "--health-port", "0")
    found = re.search(r"(http://\S+)/readyz", await worker.says("Health at"))
    assert found
    async with httpx.AsyncClient(base_url=found[1], trust_env=False) as http:
        reads = Readings(http, "default")
        await reads.until("worker_taking", 1)
        await scene.put(scene.call("wait", "done"), scene.call("wait", "runs", gate=str(scene.gate)))
        await scene.ended("done")
        await reads.until("worker_runs_total", 1, code="completed")
        await reads.until("worker_busy", 1)
        assert await reads.value("worker_slots") == 2
        assert await reads.value("worker_stuck") == 0
        assert await reads.value("worker_run_seconds_count") == 1
        assert await reads.value("store_call_seconds_count", verb="finish") == 1
        await scene.confirmed(1)
        scene.server.kill()
        await reads.until("worker_store_up", 0)
        # The lease of this scene is short: what ran is given up, and counted as lost.
        await reads.until("worker_lost_leases_total", 1)
        assert await reads.value("store_call_failures_total", reason="unavailable") > 0
        await scene.server.start()
        scene.open_gate()
        await scene.ended("runs")
    worker.signal(signal.SIGTERM)
    assert await worker.ends() == 0
    [lost] = [line for line in worker.errors.splitlines() if "a lease was lost" in line]
    assert re.search(r"job=runs lease=\d+\.1 queue=default", lost), lost
