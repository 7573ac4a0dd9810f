"""Batches under fire: whatever is killed, each row is one job that ends once, and there is one report.

Servers, workers and the store are killed with SIGKILL at random moments, with a seed, while batches are
submitted over HTTP, expanded, run through six stages, reported and sent to an address that fails, hangs and
comes back. `make soak` does the same with 1000 jobs: MAITRED_SOAK_SEED=7 MAITRED_SOAK_JOBS=1000.
"""

import asyncio
import contextlib
import os
import random
import secrets
from collections import Counter
from typing import Any

import pytest

from maitred.client import Client
from maitred.core.batch import Batch, BatchState
from maitred.errors import StoreError
from maitred.wire import BatchDocument
from maitred.wire.codec import decode_json
from tests.faults.crew import Crew, moods
from tests.faults.ingest import assert_each_stage_counted_once, jobs_of, manifest, prepare, settled
from tests.faults.scene import QUEUE, Scene
from tests.service.address import Address, Reply, listening
from tests.waiting import eventually

JOBS = int(os.environ.get("MAITRED_SOAK_JOBS", "1000"))
ADA = {"type": "user", "id": "ada"}


def address_of(receiver: Address, name: str) -> str:
    """Give an address that fails in three ways before it takes a report."""
    return receiver.at(f"/{name}", Reply(503), Reply(raw=b""), Reply(429), Reply(200))


class Desk:
    """Somebody who submits batches to the crew's servers, and waits for what becomes of them."""

    def __init__(self, crew: Crew, receiver: Address) -> None:
        self.crew, self.receiver = crew, receiver
        self.names: dict[str, str] = {}
        self.rows: dict[str, int] = {}

    async def submit(self, name: str, payload: str, **more: Any) -> str:
        """Submit a batch under a name of its own, again and again until that is answered; give its id."""
        body = {
            "external_id": name,
            "submitter": ADA,
            "payload": payload,
            "response_url": address_of(self.receiver, name),
            **more,
        }

        async def call(client: Client) -> BatchDocument:
            return await client.submit_batch(QUEUE, body)

        id = (await self.crew.ask(call)).id
        self.names[id], self.rows[id] = name, payload.count("\n") - 1
        return id

    async def delivered(self, id: str, sequence: int, patience: float) -> Batch:
        """Wait until a report is stored, and sent if it is to be."""
        store = self.crew.scene.store

        async def look() -> Batch | None:
            await asyncio.sleep(0.05)
            with contextlib.suppress(StoreError):
                batch = await store.batch(id)
                assert batch, f"{id} is lost"
                assert batch.sequence <= sequence, "there is one report too many"
                if batch.sequence == sequence and not batch.unsent:
                    return batch
            return None

        found = await eventually(look, patience)
        assert found
        return found

    def received(self, id: str) -> dict[str, list[dict[str, Any]]]:
        """Give the reports of a batch that arrived, by their webhook-id."""
        found: dict[str, list[dict[str, Any]]] = {}
        for request in self.receiver.requests:
            if request.path == f"/{self.names[id]}":
                found.setdefault(request.headers["webhook-id"], []).append(decode_json(request.body)["data"])
        return found


def keys_in(report: dict[str, Any]) -> dict[str, list[str]]:
    """Give the keys that a report tells of, by how their jobs ended."""
    return {end: [row["key"] for row in report[end]] for end in ("completed", "failed", "deleted")}


async def endure(scene: Scene, seed: int, large: int, small: int, fire: float) -> None:
    """Let one large batch and some small ones, one after the other, pass through the fire."""
    dice = random.Random(seed)
    await prepare(scene)
    crew = Crew(scene, random.Random(seed + 1))
    await crew.come_up()
    async with listening() as receiver:
        desk = Desk(crew, receiver)
        async with crew.under_fire(life=1.0, store_life=2.5) as over:
            asyncio.get_running_loop().call_later(fire, over.set)
            mood = asyncio.create_task(moods(receiver, random.Random(seed + 2)))
            first = await desk.submit("large", manifest(large, dice))
            for number in range(small):
                id = await desk.submit(f"small-{number}", manifest(dice.randint(1, 9), dice))
                await desk.delivered(id, 1, patience=fire + 120)
            batch = await desk.delivered(first, 1, patience=fire + 300)
            mood.cancel()
        await crew.leave()
        state = await settled(scene)
        jobs = {}
        for id, rows in desk.rows.items():
            batch, mine = state.batches[id], jobs_of(state, id, rows)
            jobs |= {f"{id}/{row}": job for row, job in mine.items()}
            assert (batch.state, batch.sequence, batch.fault) == (BatchState.COMPLETED, 1, "")
            assert batch.counts == dict.fromkeys(batch.counts, 0) | {"completed": rows}
            assert {job.code for job in mine.values()} == {""}
            report = decode_json(batch.report)
            everyone = [f"{id}/{row}" for row in range(1, rows + 1)]
            assert keys_in(report) == {"completed": everyone, "failed": [], "deleted": []}
            received = desk.received(id)
            assert received.keys() == {f"{id}.1"}, "one report has one id, however often it is sent"
            assert all(each == report for each in received[f"{id}.1"])
            assert receiver.replies[f"/{desk.names[id]}"] == [Reply(200)], "it was sent until it was taken"
        assert len(state.jobs) == len(jobs)
        again = assert_each_stage_counted_once(scene, jobs)
    codes = Counter(run.code or "done" for job in jobs.values() for run in job.timeline)
    sent = Counter(request.path for request in receiver.requests)
    print(f"\nseed {seed}: {len(jobs)} jobs in {len(desk.rows)} batches, killed {dict(crew.kills)}")  # noqa: T201
    print(f"runs {dict(codes)}, begun again {again}, sent {sum(sent.values())}")  # noqa: T201


@pytest.mark.parametrize("seed", [1])
async def test_each_row_is_one_job_that_ends_once_with_one_report_whatever_is_killed(
    scene: Scene, seed: int
) -> None:
    await endure(scene, seed, large=110, small=2, fire=8)


@pytest.mark.soak
@pytest.mark.timeout(1200)
async def test_a_thousand_jobs_end_once_with_one_report_whatever_is_killed(scene: Scene) -> None:
    seed = int(os.environ.get("MAITRED_SOAK_SEED", secrets.randbelow(1 << 32)))
    print(f"\nseed {seed}, {JOBS} jobs")  # noqa: T201 - whoever repeats the run needs it
    await endure(scene, seed, large=JOBS, small=10, fire=600)
