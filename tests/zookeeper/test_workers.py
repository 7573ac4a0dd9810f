"""Real workers, clerks and scribes on a queue whose ledger is a tree, on the real clock."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import pytest

from maitred import StageJob, Transient
from maitred.core.batch import Batch, BatchOrder
from maitred.core.settings import SECOND, Settings
from maitred.core.stages import INGEST
from maitred.errors import StoreUnavailable
from maitred.service.clerk import Clerk
from maitred.service.handlers import Handlers
from maitred.service.scribe import Scribe
from maitred.store.ledgered import LedgeredStore, LedgeredStores
from maitred.store.port import Stores
from maitred.wire import encode_json
from maitred.worker import Worker
from tests.conftest import Servers
from tests.conftest import connect as connect_line
from tests.service.post import postman
from tests.waiting import eventually
from tests.zookeeper.house import U1, settings_for
from tests.zookeeper.server import Ensemble

QUICK = {"backoff": 10_000, "most_backoff": 20_000, "lease": 3 * SECOND}


class Yard:
    """One queue, its functions, and what was done; every process of it has a session of its own."""

    def __init__(self, lines: Stores, queue: str, settings: Settings, stack: AsyncExitStack) -> None:
        self.lines, self.queue, self.settings, self.stack = lines, queue, settings, stack
        self.handlers = Handlers()
        self.done: list[str] = []
        self.running: Counter[str] = Counter()
        self.gate = asyncio.Event()
        self.gate.set()
        self.stops_in = ""
        self.trouble: dict[str, Exception] = {}
        for stage in INGEST:
            self.handlers.register_stage(stage, self.step)

    async def step(self, job: StageJob) -> list[str]:
        name = f"{job.key}@{job.stage}"
        self.running[job.key] += 1
        assert self.running[job.key] == 1, f"two workers run {job.key}"
        try:
            if job.stage == self.stops_in:
                await self.gate.wait()
            await asyncio.sleep(0)
            if error := self.trouble.pop(name, None):
                raise error
            self.done.append(name)
            return [*(job.data or []), job.stage]
        finally:
            self.running[job.key] -= 1

    async def process(self) -> LedgeredStore:
        """Open the queue as another process does."""
        store = LedgeredStores(self.lines).queue(self.queue)
        await store.configure(self.settings)
        self.stack.push_async_callback(store.close)
        return store

    @asynccontextmanager
    async def at_work(self, workers: int = 2, slots: int = 4) -> AsyncIterator[list[LedgeredStore]]:
        """Run so many workers and a server's roles for the time of the block."""
        stores = [await self.process() for _ in range(workers + 1)]
        crew = [Worker(store, self.handlers, slots) for store in stores[1:]]
        work = [asyncio.create_task(worker.run()) for worker in crew]
        roles = [Clerk(stores[0], "server", postman(), safety_net=0.05).run(), Scribe(stores[0]).run()]
        tasks = [asyncio.create_task(role) for role in roles]
        try:
            yield stores
        finally:
            for worker in crew:
                worker.stop()
            await asyncio.gather(*work)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def submit(self, store: LedgeredStore, count: int) -> str:
        rows = "".join(f"object-{n}\n" for n in range(count))
        sent = {"submitter": {"type": "user", "id": "1"}, "manifest_type": "object-manifest"}
        submission = encode_json({**sent, "payload": f"name\n{rows}"})
        order = BatchOrder("", U1, "", submission, expanding=True, sealed=True)
        return (await store.create_batch(order)).id

    async def reported(self, store: LedgeredStore, bid: str, patience: float = 40) -> Batch:
        async def look() -> Batch | None:
            try:
                batch = await store.batch(bid)
            except StoreUnavailable:
                # Whoever asks while a leader is chosen is told so, and asks again.
                return None
            return batch if batch and batch.sequence else None

        batch = await eventually(look, patience)
        assert batch
        return batch

    def assert_each_once(self, bid: str, count: int) -> None:
        wanted = Counter(f"{bid}/{n + 1}@{stage}" for n in range(count) for stage in INGEST)
        assert Counter(self.done) == wanted


@pytest.fixture
async def yard(servers: Servers, line: str, settings: Settings, queue_name: str) -> AsyncIterator[Yard]:
    lines = connect_line(servers, line, None)
    async with AsyncExitStack() as stack:
        yard = Yard(lines, queue_name, replace(settings, **QUICK), stack)  # type: ignore[arg-type]
        yield yard
        store = await yard.process()
        await store.tell(100)
        assert await store.check() == []
    await lines.close()


async def test_a_batch_goes_through_all_stages_and_is_reported_once(yard: Yard) -> None:
    async with yard.at_work() as [server, *_]:
        bid = await yard.submit(server, 20)
        batch = await yard.reported(server, bid)
    assert (batch.state, batch.counts["completed"]) == ("completed", 20)
    yard.assert_each_once(bid, 20)
    report = json.loads(batch.report)
    assert len(report["completed"]) == 20
    rows = (await server.batch_rows(bid, 0, 100)).rows
    [view] = await server.read([rows[0].id])
    assert view
    assert json.loads(view.job.result) == list(INGEST)


async def test_what_fails_for_a_while_is_tried_again_and_what_fails_is_reported(yard: Yard) -> None:
    yard.trouble = {
        "bid0000000000/1@downloading": Transient("the server is busy"),
        "bid0000000000/2@recording": ValueError("not a number"),
    }
    async with yard.at_work() as [server, *_]:
        bid = await yard.submit(server, 3)
        batch = await yard.reported(server, bid)
        assert (batch.state, batch.counts["completed"], batch.counts["failed"]) == ("failed", 2, 1)
        [failed] = json.loads(batch.report)["failed"]
        assert (failed["key"], "not a number" in failed["message"]) == (f"{bid}/2", True)
        await server.retry(failed["id"])

        async def completed() -> bool:
            [view] = await server.read([failed["id"]])
            return view is not None and view.job.state(INGEST) == "completed"

        await eventually(completed)
    yard.assert_each_once(bid, 3)


async def test_a_lost_session_in_the_middle_ends_nothing_twice(yard: Yard) -> None:
    yard.stops_in = "processing"
    yard.gate.clear()
    async with yard.at_work(workers=2, slots=3) as [server, one, _other]:
        bid = await yard.submit(server, 6)

        async def all_run() -> bool:
            return sum(yard.running.values()) == 6

        await eventually(all_run)
        tree = await one.tree()
        assert tree
        tree.ledger.session._lose()

        async def stopped() -> bool:
            return not any(run.forsaken for run in tree.runs.taken.values())

        await eventually(stopped)
        yard.gate.set()
        batch = await yard.reported(server, bid)
    assert batch.counts["completed"] == 6
    yard.assert_each_once(bid, 6)


async def test_a_wiped_line_is_rebuilt_while_workers_run(yard: Yard, line: str) -> None:
    """B26 with workers that live on: every job ends exactly once."""
    yard.stops_in = "processing"
    yard.gate.clear()
    async with yard.at_work(workers=2, slots=3) as [server, *_]:
        bid = await yard.submit(server, 12)

        async def some_run() -> bool:
            batch = await server.batch(bid)
            return sum(yard.running.values()) == 6 and batch is not None and batch.sealed

        await eventually(some_run)
        queue = server._line
        if line == "memory":
            queue._state = None  # type: ignore[attr-defined]
        else:
            calls = yard.lines._calls  # type: ignore[attr-defined]
            await calls.change("", "DEL", *await calls.command("", "KEYS", f"*{yard.queue}*"))
        await server.configure(yard.settings)
        await server.reconcile()
        yard.gate.set()
        batch = await yard.reported(server, bid)
    assert batch.counts["completed"] == 12
    ended = Counter(name for name in yard.done if name.endswith("@notify"))
    assert ended == Counter(f"{bid}/{n + 1}@notify" for n in range(12))


@pytest.mark.timeout(240)
async def test_b25_the_leader_is_killed_and_work_goes_on(
    ensemble: Ensemble, servers: Servers, queue_name: str
) -> None:
    lines = connect_line(servers, "valkey", None)
    settings = settings_for(f"zookeeper://{ensemble.hosts}/ingest", "seed", **{**QUICK, "lease": 15 * SECOND})
    async with AsyncExitStack() as stack:
        stack.push_async_callback(lines.close)
        yard = Yard(lines, queue_name, settings, stack)
        async with yard.at_work() as [server, *_]:
            bid = await yard.submit(server, 40)

            async def begun() -> bool:
                return len(yard.done) > 30

            await eventually(begun)
            await asyncio.to_thread(ensemble.leader().kill)
            batch = await yard.reported(server, bid, patience=150)
        assert (batch.state, batch.counts["completed"]) == ("completed", 40)
        yard.assert_each_once(bid, 40)
