"""The health of a worker alone, and what it does with its work while the store is away."""

import re
import signal
from typing import Any

import httpx
import pytest

from tests.faults.scene import Command, Scene
from tests.waiting import eventually

LONG_LEASE = '[queues.default]\nlease = "1m"\ngrace = "1s"\nkill_after = "100ms"\n'


@pytest.fixture
async def keeping(scene: Scene) -> Scene:
    """A scene whose leases outlive an outage."""
    (scene.home / "maitred.toml").write_text(LONG_LEASE)
    await scene.store.configure(scene.settings)
    return scene


class Health:
    """What a worker's probe answers."""

    def __init__(self, worker: Command, http: httpx.AsyncClient) -> None:
        self._worker, self._http = worker, http

    async def until(self, status: int, **facts: Any) -> dict[str, Any]:
        """Wait for an answer with this status and these facts of the worker; give it."""
        found = re.search(r"http://\S+", await self._worker.says("Health at"))
        assert found

        async def look() -> dict[str, Any]:
            answer = await self._http.get(found[0])
            told: dict[str, Any] = answer.json()
            shown = told["workers"][0] if told["workers"] else {}
            return told if (answer.status_code, facts) == (status, {k: shown.get(k) for k in facts}) else {}

        return await eventually(look, patience=40)


async def ends_in_order(worker: Command) -> None:
    worker.signal(signal.SIGTERM)
    assert await worker.ends() == 0
    assert "Traceback" not in worker.errors


def told_once(worker: Command) -> bool:
    """Whether the log has the outage and its end, a line for each and no more."""
    lines = [line for line in worker.errors.splitlines() if "the store " in line]
    return ["[warning" in line for line in lines] == [True, False] and "answers again" in lines[1]


async def test_a_worker_whose_loop_is_blocked_is_not_ready(keeping: Scene) -> None:
    worker = keeping.worker(2, None, "--health-port", "0")
    async with httpx.AsyncClient(trust_env=False) as http:
        health = Health(worker, http)
        await health.until(200, busy=0, stuck=0, slots=2, store_away_since=None)
        await keeping.put(keeping.call("hog", "hog", gate=str(keeping.gate)))
        await keeping.begun(1)
        told = await health.until(503, taking=False, busy=1)
        assert "neither took nor parked" in told["detail"]
        assert "event loop" in told["detail"]
        keeping.open_gate()
        await health.until(200, busy=0)
    [job] = await keeping.ended("hog")
    assert job.code == ""
    await ends_in_order(worker)


async def test_a_worker_without_a_store_says_since_when_and_is_not_ready_after_a_while(
    keeping: Scene,
) -> None:
    worker = keeping.worker(1, None, "--health-port", "0")
    async with httpx.AsyncClient(trust_env=False) as http:
        health = Health(worker, http)
        await health.until(200)
        keeping.server.kill()
        told = await health.until(503, taking=False)
        assert "the store does not answer" in told["detail"]
        assert told["workers"][0]["store_away_since"] is not None
        await keeping.server.start()
        await health.until(200, store_away_since=None)
    await ends_in_order(worker)
    assert told_once(worker)


async def test_a_worker_all_of_whose_slots_are_stuck_is_not_ready(keeping: Scene) -> None:
    worker = keeping.worker(1, None, "--health-port", "0")
    async with httpx.AsyncClient(trust_env=False) as http:
        health = Health(worker, http)
        await keeping.put(keeping.call("block", "deaf", gate=str(keeping.gate)))
        await keeping.begun(1)
        await keeping.store.cancel("deaf", "by hand")
        told = await health.until(503, stuck=1, busy=0)
        assert "do not stop" in told["detail"]
        keeping.open_gate()
        await health.until(200, stuck=0)
    await ends_in_order(worker)


@pytest.mark.parametrize("fault", ["killed", "paused"])
async def test_what_ended_while_the_store_was_away_is_told_when_it_is_back(
    keeping: Scene, fault: str
) -> None:
    worker = keeping.worker(2)
    await keeping.put(keeping.call("wait", "ends", gate=str(keeping.gate)))
    await keeping.put(keeping.call("wait", "runs", gate=f"{keeping.gate}.later"))
    await keeping.begun(2)
    await keeping.confirmed(2)
    if fault == "killed":
        keeping.server.kill()
    else:
        keeping.server.pause()
    keeping.open_gate()

    async def over() -> bool:
        return bool(keeping.lines("end")) and "the store does not answer" in worker.errors

    await eventually(over)
    if fault == "killed":
        await keeping.server.start()
    else:
        keeping.server.go_on()
    [job] = await keeping.ended("ends")
    (keeping.home / "gate.later").touch()
    [other] = await keeping.ended("runs")
    assert [[run.code for run in each.timeline] for each in (job, other)] == [[""], [""]]
    assert len(keeping.lines("begin")) == 2, "nothing ran twice"
    assert not keeping.lines("cancelled")
    await ends_in_order(worker)
    assert told_once(worker)
    await keeping.is_clean()


async def test_the_health_command_ends_with_what_a_probe_wants(keeping: Scene) -> None:
    worker = keeping.worker(1, None, "--health-port", "0")
    async with httpx.AsyncClient(trust_env=False) as http:
        await Health(worker, http).until(200)
        found = re.search(r"http://(\S+)/readyz", await worker.says("Health at"))
        assert found
        assert (await http.get(f"http://{found[1]}/healthz")).json() == {"status": "ok"}
        assert (await http.get(f"http://{found[1]}/elsewhere")).status_code == 404
        stranger = await http.get(f"http://{found[1]}/readyz", headers={"host": "example.org"})
        assert stranger.status_code == 403
        asked = keeping.starts("health", "--server", found[1])
        assert (await asked.ends(), asked.said.read_text()) == (0, "ready\n")
        await keeping.put(keeping.call("block", "deaf", gate=str(keeping.gate)))
        await keeping.begun(1)
        await keeping.store.cancel("deaf", "by hand")
        await Health(worker, http).until(503)
        asked = keeping.starts("health", "--server", found[1])
        assert await asked.ends() == 1
        assert "all its slots are held" in asked.said.read_text()
        keeping.open_gate()
    await ends_in_order(worker)
    asked = keeping.starts("health", "--server", found[1])
    assert await asked.ends() == 3
