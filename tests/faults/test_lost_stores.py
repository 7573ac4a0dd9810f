"""The store is killed under everybody's feet, and nothing that it acknowledged is lost."""

import asyncio
import re
import signal
from pathlib import Path
from typing import Any

import httpx

from maitred.client import Client
from maitred.core.job import Phase
from maitred.store.valkey.directory import DataDirectory
from maitred.store.valkey.store import ValkeyStores
from tests.closing import closing
from tests.embedded.conftest import Watched
from tests.faults.scene import QUEUE, Command, Scene
from tests.waiting import eventually


def body(key: str, **args: object) -> dict[str, object]:
    return {
        "key": key,
        "submitter": {"type": "user", "id": "7"},
        "run": {"handler": "wait", "args": args},
    }


async def address_of(server: Command) -> str:
    found = re.search(r"http://\S+", await server.says("ready"))
    assert found
    return found[0]


async def test_worker_and_server_wait_for_a_killed_store_and_go_on(scene: Scene) -> None:
    worker = scene.worker(slots=2)
    server = scene.starts("serve", "--store", scene.server.url, "--port", "0")
    address = await address_of(server)
    await scene.workers(1)
    url = f"{address}/api/v1/queues/{QUEUE}/jobs"
    async with httpx.AsyncClient(trust_env=False, timeout=20) as http:
        accepted = []
        for n in range(20):
            answer = await http.put(url, json=body(f"j{n}", seconds=0.01))
            assert answer.status_code == 201, answer.text
            accepted.append(answer.json()["id"])
        answer = await http.put(url, json=body("running", gate=str(scene.gate)))
        accepted.append(answer.json()["id"])
        await scene.begun(1, "running")
        scene.server.kill()
        answer = await http.put(url, json=body("refused"))
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "10")
        assert (await http.get(f"{address}/readyz")).status_code == 503
        assert (await http.get(f"{address}/healthz")).status_code == 200
        # Longer than the lease: the worker must give up what it ran.
        await eventually(lambda: noted(scene, "cancelled"))
        scene.open_gate()
        await scene.server.start()

        async def works() -> str:
            answer = await http.put(url, json=body("after"))
            return str(answer.json()["id"]) if answer.status_code == 201 else ""

        accepted.insert(0, await eventually(works))
    jobs = await scene.ended(*accepted)
    assert {job.code for job in jobs} == {""}
    assert [run.code for run in jobs[-1].timeline] == ["lost", ""], "given up in the outage, and run again"
    for command in (worker, server):
        command.signal(signal.SIGTERM)
        assert await command.ends() == 0
        assert command.errors.count("the store does not answer") <= 2, "one word per outage is enough"
    state = await scene.is_clean()
    assert {job.phase for job in state.jobs.values()} == {Phase.ENDED}


async def noted(scene: Scene, what: str) -> bool:
    return bool(scene.lines(what))


async def test_a_killed_house_has_every_acknowledged_job_at_its_next_start(scene: Scene) -> None:
    data = scene.home / ".maitred"
    words = ("up", "--port", "0", "--slots", "2", "--app", "faults_app")
    house = scene.starts(*words)
    async with Client(await address_of(house)) as client:
        ids = [(await client.put(QUEUE, body(f"r{n}", gate=str(scene.gate)))).id for n in range(3)]
        ids += [(await client.put(QUEUE, body(f"w{n}"))).id for n in range(30)]
    await scene.begun(2)
    note = embedded_note(data)
    server = Watched(note["server_pid"])
    house.kill()
    assert await asyncio.to_thread(server.has_ended, 20), "the server outlived its owner"
    server.close()
    scene.open_gate()
    again = scene.starts(*words)
    async with Client(await address_of(again)) as client:

        async def all_ended() -> bool:
            jobs = [await client.job(QUEUE, id) for id in ids]
            return all(job.phase is None for job in jobs)

        await eventually(all_ended)
        states = {(await client.job(QUEUE, id)).state for id in ids}
    assert states == {"completed"}
    assert not Path(note["socket"]).parent.exists(), "the next start clears up after the killed one"
    second = embedded_note(data)
    async with closing(ValkeyStores(f"unix://{second['socket']}")) as stores:
        store = stores.queue(QUEUE)
        assert await store.check() == []
        scene.assert_no_finished_job_ran_again(await store.snapshot())
    again.signal(signal.SIGTERM)
    assert await again.ends() == 0
    assert not Path(second["socket"]).parent.exists()


def embedded_note(data: Path) -> dict[str, Any]:
    found = DataDirectory(data).read_note()
    assert found is not None
    return found
