"""A batch on Valkey and ZooKeeper while workers and servers are killed at any moment: each job ends once."""

import asyncio
import json
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from maitred.core.batch import Batch, BatchOrder
from maitred.core.job import Job, Phase
from maitred.core.stages import INGEST
from maitred.store.ledgered import LedgeredStore, LedgeredStores
from maitred.store.valkey.store import ValkeyStores
from maitred.wire.codec import encode_json
from tests.faults.scene import QUEUE, U1, Command, Scene
from tests.faults.test_stages import prepared
from tests.faults.turmoil import Turmoil
from tests.ports import free_ports
from tests.waiting import eventually
from tests.zookeeper.server import ZooKeeper

WORKERS, SLOTS = 2, 4
SEED = int(os.environ.get("MAITRED_SOAK_SEED", "1"))


@dataclass
class Books:
    """The scene's queue as a process of its own sees it: the line and the tree."""

    scene: Scene
    store: LedgeredStore

    async def submit(self, count: int) -> str:
        """Submit a batch whose rows are these many lines of a manifest."""
        text = "name\n" + "".join(f"object-{n}\n" for n in range(count))
        sent = {
            "submitter": {"type": "user", "id": "1"},
            "manifest_type": "object-manifest",
            "payload": text,
        }
        order = BatchOrder("x", U1, "", encode_json(sent), expanding=True, sealed=True)
        return (await self.store.create_batch(order)).id

    async def finished(self, bid: str, patience: float) -> Batch:
        """Wait until the batch is reported."""

        async def look() -> Batch | None:
            batch = await self.store.batch(bid)
            return batch if batch and batch.sequence else None

        batch = await eventually(look, patience)
        assert batch
        return batch

    async def jobs(self, bid: str) -> list[Job]:
        ids = [row.id for row in (await self.store.batch_rows(bid, 0, 100_000)).rows]
        views = await self.store.read(ids)
        return [view.job for view in views if view]


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[ZooKeeper]:
    server = ZooKeeper(tmp_path / "zookeeper", free_ports(1)[0])
    server.start()
    server.await_ready()
    yield server
    server.stop()


@pytest.fixture
async def books(scene: Scene, zookeeper: ZooKeeper) -> AsyncIterator[Books]:
    await prepared(scene)
    more = f'stages = {json.dumps(list(INGEST))}\nledger = "zookeeper://{zookeeper.host}/ingest"\n'
    scene.configure(attempts=100, more=more)
    stores = LedgeredStores(ValkeyStores(scene.server.url))
    store = stores.queue(QUEUE)
    await store.configure(scene.settings)
    yield Books(scene, store)
    await stores.close()


class Servers:
    """Servers of the scene, of which one is killed again and again and started anew."""

    def __init__(self, scene: Scene, dice: random.Random) -> None:
        self.scene, self.dice = scene, dice
        self.running: list[Command] = []

    async def up(self, count: int) -> None:
        while len(self.running) < count:
            server = self.scene.starts("serve", "--store", self.scene.server.url, "--port", "0")
            await server.says("ready")
            self.running.append(server)

    async def keep_killing(self, until: asyncio.Event) -> None:
        while not until.is_set():
            await asyncio.sleep(self.dice.uniform(0.2, 1.0))
            self.running.pop(self.dice.randrange(len(self.running))).kill()
            await self.up(2)


async def everything_ends_once(books: Books, count: int, seconds: float, seed: int) -> None:
    scene, dice = books.scene, random.Random(seed)
    servers, turmoil = Servers(scene, dice), Turmoil(scene, dice)
    await servers.up(2)
    bid = await books.submit(count)
    over = asyncio.Event()
    killing = asyncio.create_task(servers.keep_killing(over))
    await turmoil.keep_killing_workers(count=WORKERS, slots=SLOTS, until=turmoil.clock() + seconds)
    over.set()
    await killing
    batch = await books.finished(bid, patience=60 + seconds)
    jobs = await books.jobs(bid)
    assert (batch.state, batch.sequence, batch.counts["completed"]) == ("completed", 1, count)
    report = json.loads(batch.report)
    assert Counter(row["id"] for row in report["completed"]) == Counter(job.id for job in jobs)
    assert len(jobs) == count
    assert {(job.phase, job.code, job.result) for job in jobs} == {
        (Phase.ENDED, "", encode_json(list(INGEST)))
    }, "each stage got what the one before returned, once"
    await turmoil.stop_workers()
    for server in servers.running:
        server.kill()
    await scene.is_clean()
    tree = await books.store.tree()
    assert tree
    assert [entry.jid async for entry in tree.ledger.unended()] == []
    assert await books.store.check() == []
    assert turmoil.harm, "nobody was harmed"


@pytest.mark.timeout(180)
async def test_workers_and_servers_are_killed_at_any_moment_and_each_job_ends_once(books: Books) -> None:
    await everything_ends_once(books, count=120, seconds=8, seed=SEED)


@pytest.mark.soak
@pytest.mark.timeout(1_800)
async def test_a_thousand_jobs_in_six_stages_end_once_whoever_is_killed(books: Books) -> None:
    await everything_ends_once(books, count=1_000, seconds=120, seed=SEED)
