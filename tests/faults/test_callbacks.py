"""What is to be told survives: servers are killed between a result and its delivery, and nothing is lost."""

import os
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from maitred.client import Client
from maitred.service.keyring import LOCAL, Keys
from maitred.webhooks import verify
from maitred.wire import decode_json
from tests.faults.crew import READY, WORKING, Member
from tests.faults.scene import QUEUE, Scene
from tests.service.address import Address, Reply, listening
from tests.waiting import eventually

JOBS = 40
ADA = {"type": "user", "id": "ada"}
Told = dict[str, list[str]]


class Server(Member):
    """A server that can be killed and started again."""

    def __init__(self, scene: Scene, name: str = "data") -> None:
        super().__init__(
            scene,
            READY,
            "serve",
            "--store",
            scene.server.url,
            "--port",
            "0",
            "--data",
            str(scene.home / name),
        )

    def kill(self) -> None:
        assert self.command
        self.command.kill()

    async def takes(self, key: str, url: str, **run: Any) -> str:
        """Let a job be submitted; give its id."""
        async with Client(self.address) as client:
            body = {"key": key, "submitter": ADA, "response_url": url, "run": run}
            return (await client.put(QUEUE, body)).id


@pytest.fixture
async def server(scene: Scene) -> Server:
    server = Server(scene)
    await server.comes_up()
    return server


@pytest.fixture
async def worker(scene: Scene, server: Server) -> Member:
    worker = Member(
        scene, WORKING, "work", "--store", scene.server.url, "--app", "faults_app", "--slots", "4"
    )
    await worker.comes_up()
    return worker


@pytest.fixture
async def receiver() -> AsyncIterator[Address]:
    async with listening() as address:
        yield address


async def hears(receiver: Address, count: int, patience: float = 60) -> None:
    """Wait until a receiver was told so many things."""

    async def look() -> bool:
        return len(receiver.requests) >= count

    await eventually(look, patience)


def told(receiver: Address) -> Told:
    """Give what a receiver was told of each job, by key, without repeats."""
    seen: set[str] = set()
    found: Told = {}
    for request in receiver.requests:
        if (id := request.headers["webhook-id"]) not in seen:
            seen.add(id)
            message = decode_json(request.body)
            found.setdefault(message["data"]["key"], []).append(message["type"])
    return found


async def test_what_ends_while_no_server_is_there_is_told_by_the_next(
    scene: Scene, server: Server, worker: Member, receiver: Address
) -> None:
    id = await server.takes(
        "k", receiver.at("/r", Reply(200)), handler="wait", args={"gate": str(scene.gate)}
    )
    [secret] = await Keys(scene.stores.keyring).signing(LOCAL)

    async def the_start_was_told() -> bool:
        return bool(await scene.store.deliveries(id))

    await eventually(the_start_was_told)
    server.kill()
    scene.open_gate()
    [job] = await scene.ended(id)
    assert len(receiver.requests) == 1
    await server.comes_up()
    await hears(receiver, 2)
    assert told(receiver) == {"k": ["job.started", "job.ended"]}
    for request in receiver.requests:
        assert verify(secret, request.headers, request.body)
    assert decode_json(receiver.requests[-1].body)["data"]["result"] == decode_json(job.result)
    await worker.stops()
    await server.stops()


async def test_a_server_that_dies_while_it_tells_leaves_that_to_another_under_the_same_id(
    scene: Scene, server: Server, worker: Member, receiver: Address
) -> None:
    receiver.silent = True
    id = await server.takes("k", receiver.at("/r", Reply(200)), handler="wait")
    await hears(receiver, 1)
    await scene.ended(id)
    server.kill()
    receiver.silent = False
    await server.comes_up()
    await hears(receiver, 3)
    first, again, last = receiver.requests
    assert first.headers["webhook-id"] == again.headers["webhook-id"]
    assert first.body == again.body
    assert decode_json(last.body)["type"] == "job.ended"
    await worker.stops()
    await server.stops()


@pytest.mark.timeout(180)
async def test_servers_that_are_killed_again_and_again_lose_nothing(
    scene: Scene, server: Server, worker: Member, receiver: Address
) -> None:
    seed = int(os.environ.get("MAITRED_SOAK_SEED", str(random.SystemRandom().randrange(1000))))
    dice = random.Random(seed)
    other = Server(scene, "other")
    await other.comes_up()
    ids = []
    for number in range(JOBS):
        moods = dice.choices([Reply(503), Reply(raw=b""), Reply(200, endless=b"x")], k=dice.randrange(3))
        url = receiver.at(f"/{number}", *moods, Reply(200))
        ids.append(await dice.choice([server, other]).takes(f"k{number}", url, handler="wait"))
        if number in (10, 20, 30):
            killed = dice.choice([server, other])
            killed.kill()
            await killed.comes_up()
    jobs = await scene.ended(*ids)

    async def everything_was_told() -> bool:
        return not (await scene.store.snapshot()).notices

    await eventually(everything_was_told, patience=120)
    expected = ["job.started", "job.ended"]
    assert told(receiver) == {f"k{number}": expected for number in range(JOBS)}, f"with the seed {seed}"
    assert {job.code for job in jobs} == {""}
    for each in (worker, server, other):
        await each.stops()
    await scene.is_clean()


async def test_a_program_sees_neither_the_address_nor_the_secret(
    scene: Scene, server: Server, worker: Member, receiver: Address
) -> None:
    url = receiver.at("/a-place-that-is-nobodys-business", Reply(200))
    [secret] = await Keys(scene.stores.keyring).signing(LOCAL)
    look = "env; find . -type f -exec cat {} +; cat /proc/self/cmdline /proc/self/environ | tr '\\0' '\\n'"
    id = await server.takes(
        "k", url, command=["sh", "-c", look], files={"main.txt": {"text": "what it was given"}}
    )
    [job] = await scene.ended(id)
    await hears(receiver, 2)
    seen = decode_json(job.result)["stdout"]
    assert "what it was given" in seen
    for hidden in ("nobodys-business", str(receiver.port), secret, "whsec_", "submitted_by"):
        assert hidden not in seen
    await worker.stops()
    await server.stops()


async def test_a_handler_sees_neither_the_address_nor_the_secret(
    scene: Scene, server: Server, receiver: Address
) -> None:
    (scene.home / "looking_app.py").write_text(
        "import maitred, os\n"
        "from maitred.worker import current_job\n"
        "q = maitred.Queue('default')\n"
        "@q.handler('look')\n"
        "async def look(**args):\n"
        "    return repr((current_job(), args, dict(os.environ)))\n"
    )
    worker = Member(scene, WORKING, "work", "--store", scene.server.url, "--app", "looking_app")
    await worker.comes_up()
    [secret] = await Keys(scene.stores.keyring).signing(LOCAL)
    id = await server.takes("k", receiver.at("/nobodys-business", Reply(200)), handler="look", args={"a": 1})
    [job] = await scene.ended(id)
    seen = decode_json(job.result)
    assert "'a': 1" in seen
    for hidden in ("nobodys-business", secret, "whsec_", "submitted_by"):
        assert hidden not in seen
    await worker.stops()
    await server.stops()
