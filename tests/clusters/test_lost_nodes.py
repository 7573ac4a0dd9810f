"""Nodes of a cluster are killed: the others go on, and what a lost one had goes on when it is back."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from maitred.cli.app import app
from maitred.client import Client
from maitred.errors import StoreUnavailable
from maitred.store.valkey import keys
from tests.clusters.servers import Nodes
from tests.conftest import Servers
from tests.faults.scene import Scene, StoreServer
from tests.faults.test_lost_stores import address_of
from tests.waiting import eventually


class ClusterStore(StoreServer):
    """A store on a cluster whose first node has a replica."""

    def __init__(self, home: Path) -> None:
        self.cluster = Nodes(Servers.binary("valkey"), home, spare=True)
        self.url = self.cluster.url

    async def start(self) -> None:
        """Start all of it."""
        await self.cluster.start()
        first, spare = self.cluster.nodes[0], self.cluster.nodes[-1]
        spare.says("CLUSTER", "REPLICATE", first.says("CLUSTER", "MYID"))

    def clear(self) -> None:
        """Leave nothing of it."""
        self.cluster.clear()


class ClusterScene(Scene):
    """A scene whose store is a cluster."""

    def make_server(self) -> StoreServer:
        """Give the nodes."""
        return ClusterStore(self.home / "cluster")

    @property
    def cluster(self) -> Nodes:
        """The nodes."""
        assert isinstance(self.server, ClusterStore)
        return self.server.cluster


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[ClusterScene]:
    async with ClusterScene(tmp_path) as scene:
        yield scene


class Guest:
    """Somebody who submits to queues, and waits for what he submitted."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.number = 0

    async def is_served(self, queue: str) -> str:
        """Submit until a job is accepted, and see it end; give its id."""

        async def accepted() -> str:
            self.number += 1
            who = {"type": "user", "id": "1"}
            body = {"key": f"j{self.number}", "submitter": who, "run": {"command": ["true"]}}
            with contextlib.suppress(StoreUnavailable):
                return (await self.client.put(queue, body)).id
            return ""

        id = await eventually(accepted)
        await self.sees_end(queue, id)
        return id

    async def sees_end(self, queue: str, id: str) -> None:
        """Wait until a job is completed, and see that all is well with its queue."""

        async def look() -> bool:
            with contextlib.suppress(StoreUnavailable):
                completed = (await self.client.job(queue, id)).state == "completed"
                return completed and (await self.client.check(queue)).violations == []
            return False

        await eventually(look)


async def test_each_queue_works_while_its_node_lives_and_again_when_it_is_back(scene: ClusterScene) -> None:
    cluster = scene.cluster
    first, second, third, spare = cluster.nodes
    queues = [cluster.queue_on(node, "q") for node in (first, second, third)]
    tables = "".join(f'\n[queues.{queue}]\nlease = "1s"\n' for queue in queues)
    scene.configure(100, f'{tables}\n[store]\nurl = "{scene.server.url}"\n')
    house = scene.starts("up", "--port", "0", "--slots", "1")
    async with Client(await address_of(house)) as client:
        guest = Guest(client)
        served = [await guest.is_served(queue) for queue in queues]
        words = ["doctor", "--store", scene.server.url, "--data", str(scene.home)]
        told = await asyncio.to_thread(CliRunner().invoke, app, words)
        assert f"it answers, with 4 queues: default, {', '.join(sorted(queues))}" in told.stdout, told.output

        # Not the one that has the API keys: without those a server lets nobody in.
        assert cluster.of(keys.KEYS) is not third
        third.kill()
        with pytest.raises(StoreUnavailable):
            await scene.stores.ping()
        with pytest.raises(StoreUnavailable):
            await scene.stores.queue(queues[2]).tick()
        await guest.is_served(queues[0])
        cluster.launch(third)
        await guest.is_served(queues[2])

        written = first.says("ROLE")[1]

        async def replicated() -> bool:
            return bool(spare.says("ROLE")[4] >= written)

        await eventually(replicated)
        first.kill()
        spare.says("CLUSTER", "FAILOVER", "TAKEOVER")
        for queue, id in zip(queues, served, strict=True):
            await guest.is_served(queue)
            await guest.sees_end(queue, id)
    house.signal(signal.SIGTERM)
    assert await house.ends() == 0, house.errors
