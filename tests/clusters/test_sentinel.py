"""The primary is killed, its replica takes over, and nothing that was acknowledged is lost."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from maitred.client import Client
from maitred.core.job import Order, Put
from maitred.core.settings import Settings
from maitred.errors import StoreUnavailable
from maitred.store.valkey import sentinel as watching
from maitred.store.valkey.store import ValkeyStores
from tests.closing import closing
from tests.clusters.servers import NAME, Node, Watched
from tests.conftest import Servers
from tests.faults.scene import Scene, StoreServer
from tests.faults.test_lost_stores import address_of, body
from tests.ports import HOST, free_ports
from tests.waiting import eventually


class WatchedStore(StoreServer):
    """A store behind sentinels, each of whose changes its replica has before it is acknowledged."""

    def __init__(self, home: Path) -> None:
        self.watched = Watched(Servers.binary("redis"), home)
        self.url = f"{self.watched.url}?replicas=1"

    async def start(self) -> None:
        """Start all of it."""
        await self.watched.start()

    def clear(self) -> None:
        """Leave nothing of it."""
        self.watched.clear()


class WatchedScene(Scene):
    """A scene whose store is behind sentinels."""

    def make_server(self) -> StoreServer:
        """Give the servers and their sentinels."""
        return WatchedStore(self.home / "watched")

    @property
    def watched(self) -> Watched:
        """The servers and their sentinels."""
        assert isinstance(self.server, WatchedStore)
        return self.server.watched


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[WatchedScene]:
    async with WatchedScene(tmp_path) as scene:
        yield scene


class Guests:
    """Somebody who submits one job after the other, and knows what was acknowledged."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.acknowledged: list[str] = []
        self.refused = 0

    async def come(self) -> None:
        """Submit until cancelled; what was not acknowledged is submitted again."""
        for n in range(1_000_000):
            order: Order = self._scene.call("wait", f"j{n}", seconds=0.01)
            while True:
                try:
                    assert isinstance((await self._scene.store.put([order]))[0], Put)
                    break
                except StoreUnavailable:
                    self.refused += 1
                    await asyncio.sleep(0.02)
            self.acknowledged.append(order.id)
            await asyncio.sleep(0.005)

    async def have_come(self, count: int) -> None:
        """Wait until so many more jobs are acknowledged."""
        wanted = len(self.acknowledged) + count

        async def look() -> bool:
            return len(self.acknowledged) >= wanted

        await eventually(look)


async def test_after_a_failover_every_acknowledged_job_is_there_and_ends_once(scene: WatchedScene) -> None:
    scene.configure(100, f'\n[store]\nurl = "{scene.server.url}"\n')
    house = scene.starts("up", "--port", "0", "--slots", "2", "--app", "faults_app")
    address = await address_of(house)
    guests = Guests(scene)
    coming = asyncio.create_task(guests.come())
    await guests.have_come(50)
    old = scene.watched.pair[0]
    old.kill()
    new = await scene.watched.fails_over(old)
    # Until there is a replica again, nothing is acknowledged.
    old.launch(appendonly="yes", replicaof=f"{HOST} {new.port}")
    await guests.have_come(50)
    coming.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await coming
    async with Client(address) as client:

        async def served() -> str:
            with contextlib.suppress(StoreUnavailable):
                return (await client.put("default", body("over-http"))).id
            return ""

        guests.acknowledged.append(await eventually(served))
    assert guests.refused, "nobody met the failover"
    jobs = await scene.ended(*guests.acknowledged)
    assert {job.code for job in jobs} == {""}
    house.signal(signal.SIGTERM)
    assert await house.ends() == 0, house.errors
    scene.assert_no_finished_job_ran_again(await scene.is_clean())


@pytest.fixture
async def sentinel(tmp_path: Path) -> AsyncIterator[Node]:
    """A sentinel that watches nobody yet."""
    [port] = free_ports(1)
    sentinel = Node(Servers.binary("redis"), tmp_path / "sentinel", port, "sentinel.conf", "--sentinel")
    (sentinel.home / "sentinel.conf").touch()
    sentinel.launch()
    try:
        yield await sentinel.answers()
    finally:
        sentinel.clear()


async def test_sentinels_that_know_no_primary_of_that_name_say_so(sentinel: Node) -> None:
    async with closing(ValkeyStores(f"valkey+sentinel://{HOST}:{sentinel.port}/nobody")) as stores:
        with pytest.raises(StoreUnavailable, match=r"no sentinel names its primary .*'nobody'"):
            await stores.ping()


async def test_an_old_primary_that_lives_on_is_left(
    sentinel: Node, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LOOK_EVERY", 0.02)
    ports = free_ports(2)
    old, new = (Node(servers.binary("redis"), tmp_path / str(port), port) for port in ports)
    stores = ValkeyStores(f"valkey+sentinel://{HOST}:{sentinel.port}/{NAME}")
    try:
        for node in (old, new):
            node.launch()
            await node.answers()
        sentinel.says("SENTINEL", "MONITOR", NAME, HOST, old.port, 1)
        await stores.queue("q").configure(Settings())
        parked = asyncio.create_task(stores.queue("q").park("w", 30))

        async def is_parked() -> bool:
            return bool(old.says("INFO", "clients")["blocked_clients"])

        await eventually(is_parked)
        sentinel.says("SENTINEL", "REMOVE", NAME)
        sentinel.says("SENTINEL", "MONITOR", NAME, HOST, new.port, 1)
        with pytest.raises(StoreUnavailable):
            await parked

        async def is_left() -> bool:
            return "q" not in await stores.names()

        await eventually(is_left)
        assert old.says("ROLE")[0] == "master"
    finally:
        await stores.close()
        for node in (old, new):
            node.clear()
