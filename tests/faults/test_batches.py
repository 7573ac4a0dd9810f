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
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from maitred.client import Client
from maitred.core.batch import Batch, BatchState
from maitred.core.job import Job
from maitred.core.stages import INGEST
from maitred.errors import Conflict, StoreError
from maitred.wire import BatchDocument
from maitred.wire.codec import decode_json
from tests.faults.crew import Crew, moods
from tests.faults.ingest import (
    BUDGET,
    assert_each_stage_counted_once,
    checkm,
    jobs_of,
    manifest,
    prepare,
    settled,
)
from tests.faults.scene import QUEUE, Scene
from tests.service.address import Address, Reply, listening
from tests.waiting import eventually

JOBS = int(os.environ.get("MAITRED_SOAK_JOBS", "1000"))
PROFILE = "dryad"
Fire = Callable[[Crew], AbstractAsyncContextManager[asyncio.Event]]
Call = Callable[[Client], Awaitable[object]]
ADA = {"type": "user", "id": "ada"}


def address_of(receiver: Address, name: str) -> str:
    """Give an address that fails in three ways before it takes a report."""
    return receiver.at(f"/{name}", Reply(503), Reply(raw=b""), Reply(429), Reply(200))


def tell(words: str) -> None:
    """Say what was done; whoever repeats a run needs it."""
    print(f"\n{words}", end="")  # noqa: T201


class Desk:
    """Somebody who submits batches to the crew's servers, and waits for what becomes of them."""

    def __init__(self, crew: Crew, receiver: Address) -> None:
        self.crew, self.receiver = crew, receiver
        self.names: dict[str, str] = {}
        self.rows: dict[str, int] = {}

    async def submit(self, name: str, rows: int, **more: Any) -> str:
        """Submit a batch under a name of its own, again and again until that is answered; give its id."""
        body = {
            "external_id": name,
            "submitter": ADA,
            "response_url": address_of(self.receiver, name),
            **more,
        }

        async def call(client: Client) -> BatchDocument:
            return await client.submit_batch(QUEUE, body)

        id = (await self.crew.ask(call)).id
        self.names[id], self.rows[id] = name, rows
        return id

    async def delivered(self, id: str, sequence: int) -> Batch:
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

        found = await eventually(look, patience=900)
        assert found
        return found

    async def retry(self, id: str) -> int:
        """Retry the failed jobs of a batch; give how many there were when that was answered."""

        async def call(client: Client) -> int:
            return await client.retry_batch(QUEUE, id)

        return await self.crew.ask(call)

    async def ask_for_update(self, id: str, sequence: int) -> None:
        """Ask for the report with this number; not twice, if it was heard and not answered."""

        async def call(client: Client) -> None:
            batch = await client.batch(QUEUE, id)
            if batch.sequence < sequence and batch.state != "update-reporting":
                await client.update_report(QUEUE, id)

        await self.crew.ask(call)

    def received(self, id: str) -> dict[str, list[dict[str, Any]]]:
        """Give the reports of a batch that arrived, by their webhook-id."""
        found: dict[str, list[dict[str, Any]]] = {}
        for request in self.receiver.requests:
            if request.path == f"/{self.names[id]}":
                report = decode_json(request.body)["data"]["report"]
                found.setdefault(request.headers["webhook-id"], []).append(report)
        return found


class Operator:
    """Somebody who holds a batch and a profile and pauses the queue at random, and lets all go on again."""

    def __init__(self, crew: Crew, dice: random.Random, id: str) -> None:
        self.crew, self.dice, self.id = crew, dice, id
        self.done: Counter[str] = Counter()

    async def meddle(self, over: asyncio.Event) -> None:
        """Hold and let go until it is over."""
        verbs: dict[str, tuple[Call, Call]] = {
            "batch": (lambda c: c.hold_batch(QUEUE, self.id, "why not"), self._resume_batch),
            "profile": (lambda c: c.hold_profile(QUEUE, PROFILE), self._resume_profile),
            "queue": (lambda c: c.pause(QUEUE), self._resume),
        }
        while not over.is_set():
            name = self.dice.choice(list(verbs))
            hold, resume = verbs[name]
            self.done[name] += await self._told(hold)
            # How long it is held is what is random here.
            await asyncio.sleep(self.dice.uniform(0, 0.5))
            await self._told(resume)
            await asyncio.sleep(self.dice.uniform(0, 1))
        # What was not answered may have been done.
        for resume in (self._resume_batch, self._resume_profile, self._resume):
            await self._told(resume)

    def _resume_batch(self, client: Client) -> Awaitable[object]:
        return client.resume_batch(QUEUE, self.id)

    def _resume_profile(self, client: Client) -> Awaitable[object]:
        return client.resume_profile(QUEUE, PROFILE)

    def _resume(self, client: Client) -> Awaitable[object]:
        return client.resume(QUEUE)

    async def _told(self, call: Call) -> bool:
        """Tell a server; a batch that is past it, or not held any more, refuses."""
        try:
            await self.crew.ask(call)
        except Conflict:
            return False
        return True


def keys_in(report: dict[str, Any]) -> dict[str, list[str]]:
    """Give the keys that a report tells of, by how their jobs ended."""
    return {end: [row["key"] for row in report[end]] for end in ("completed", "failed", "deleted")}


async def endure(scene: Scene, seed: int, large: int, small: int, fire: Fire) -> None:
    """Let a large batch and some small ones, whose manifests have to be fetched, pass through the fire."""
    dice = random.Random(seed)
    await prepare(scene)
    crew = Crew(scene, random.Random(seed + 1))
    await crew.come_up()
    async with listening() as receiver, listening() as stock:
        desk = Desk(crew, receiver)
        async with fire(crew):
            mood = asyncio.create_task(moods(receiver, random.Random(seed + 2)))
            first = await desk.submit("large", large, payload=manifest(large, dice))
            for number in range(small):
                rows = dice.randint(1, 9)
                listed = stock.at(f"/{number}", Reply(503), Reply(body=checkm(rows, dice)))
                run = {"args": {"trouble": "", "seconds": 0.05}}
                id = await desk.submit(f"small-{number}", rows, payload_filename=listed, run=run)
                await desk.delivered(id, 1)
            await desk.delivered(first, 1)
            mood.cancel()
        await crew.leave()
        state = await settled(scene)
        jobs: dict[str, Job] = {}
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
            [same] = received.values()  # one report has one id, however often it is sent
            assert all(each == report for each in same)
            assert receiver.replies[f"/{desk.names[id]}"] == [Reply(200)], "it was sent until it was taken"
        assert len(state.jobs) == len(jobs)
        again = assert_each_stage_counted_once(scene, jobs)
    codes = Counter(run.code or "done" for job in jobs.values() for run in job.timeline)
    tell(f"seed {seed}: {len(jobs)} jobs in {len(desk.rows)} batches, killed {dict(crew.kills)}")
    tell(f"runs {dict(codes)}, begun again {again}, sent {len(receiver.requests)}")
    tell(f"a call that was not answered took {crew.longest_wait:.1f} s at most")


def troubles_of(rows: int, dice: random.Random) -> dict[int, str]:
    """Choose some rows that stumble, that fail until something is mended, and that fail for good."""
    chosen = dice.sample(range(1, rows + 1), max(6, rows // 4))
    kinds = ["huge", "hopeless", *dice.choices(["transient", "fail", "hopeless"], [3, 3, 1], k=len(chosen))]
    return {
        row: kind if kind == "huge" else f"{kind}:{dice.choice(INGEST)}"
        for row, kind in zip(chosen, kinds, strict=False)
    }


def keys_by_trouble(id: str, rows: int, troubles: dict[int, str]) -> dict[str, set[str]]:
    """Give the keys of a batch's jobs by what happens to them."""
    keys: dict[str, set[str]] = {
        "huge": set(),
        "hopeless": set(),
        "transient": set(),
        "fail": set(),
        "": set(),
    }
    for row in range(1, rows + 1):
        keys[troubles.get(row, "").partition(":")[0]].add(f"{id}/{row}")
    return keys


def assert_only_changes_are_told(keys: dict[str, set[str]], reports: list[dict[str, Any]]) -> None:
    first, second, third = map(keys_in, reports)
    assert [(report["sequence"], report["kind"]) for report in reports] == [
        (1, "report"),
        (2, "update-report"),
        (3, "update-report"),
    ]
    assert set(first["completed"]) == keys[""] | keys["transient"]
    assert set(first["failed"]) == keys["fail"] | keys["hopeless"] | keys["huge"]
    assert set(second["completed"]) == keys["fail"], "what was mended, and nothing else"
    assert third == {"completed": [], "failed": [], "deleted": []}
    assert second["failed"] == first["deleted"] == second["deleted"] == []
    told = [key for report in (first, second) for listed in report.values() for key in listed]
    assert len(told) == len(set(told)) + len(keys["fail"]), "nothing is told twice in a report"
    messages = {row["message"] for row in reports[0]["failed"] if row["key"] in keys["huge"]}
    assert messages == {f"needs {BUDGET + 1} bytes of space, and there are {BUDGET}"}
    messages = {row["message"].partition(" in ")[0] for row in reports[0]["failed"]} - messages
    assert messages == {"ValueError: fail", "ValueError: hopeless"}


def assert_only_what_failed_was_retried(keys: dict[str, set[str]], jobs: dict[str, Job]) -> None:
    assert {key for key, job in jobs.items() if job.code == "space"} == keys["huge"]
    assert {key for key, job in jobs.items() if job.code == "error"} == keys["hopeless"]
    retries = {kind: {jobs[key].retries for key in keys[kind]} for kind in keys}
    assert retries[""] | retries["transient"] == {0}
    assert retries["fail"] == {1}, "what was mended went through"
    assert min(retries["hopeless"] | retries["huge"]) >= 2, "the rest was retried twice, and failed again"
    stumbled = [jobs[key] for key in keys["transient"]]
    assert all(any(run.code in ("error", "lost") for run in job.timeline) for job in stumbled)


async def endure_failures(scene: Scene, seed: int, rows: int, fire: Fire) -> None:
    """Let a batch fail under fire, retry it, and ask for two update reports."""
    dice = random.Random(seed)
    await prepare(scene)
    troubles = troubles_of(rows, dice)
    crew = Crew(scene, random.Random(seed + 1))
    await crew.come_up()
    async with listening() as receiver:
        desk = Desk(crew, receiver)
        async with fire(crew) as over:
            id = await desk.submit(
                "failing", rows, payload=manifest(rows, dice, troubles), profile_name=PROFILE
            )
            operator = Operator(crew, random.Random(seed + 2), id)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(operator.meddle(over))
                first = await desk.delivered(id, 1)
                (scene.home / "mended").touch()
                await desk.retry(id)
                await desk.ask_for_update(id, 2)
                second = await desk.delivered(id, 2)
                await desk.retry(id)
                await desk.ask_for_update(id, 3)
                await desk.delivered(id, 3)
                over.set()
        await crew.leave()
        state = await settled(scene)
    batch = state.batches[id]
    assert (batch.state, batch.sequence, batch.fault) == (BatchState.FAILED, 3, "")
    keys = keys_by_trouble(id, rows, troubles)
    reports = [decode_json(report) for report in (first.report, second.report, batch.report)]
    assert_only_changes_are_told(keys, reports)
    received = desk.received(id)
    assert len(received) == 2, "the third tells nothing, and was not sent"
    for report, same in zip(reports, received.values(), strict=False):
        assert all(each == report for each in same)
    jobs = {f"{id}/{row}": job for row, job in jobs_of(state, id, rows).items()}
    assert_only_what_failed_was_retried(keys, jobs)
    again = assert_each_stage_counted_once(scene, jobs)
    codes = Counter(run.code or "done" for job in jobs.values() for run in job.timeline)
    tell(f"seed {seed}: {rows} jobs, killed {dict(crew.kills)}, held {dict(operator.done)}")
    tell(f"runs {dict(codes)}, begun again {again}, sent {len(receiver.requests)}")
    tell(f"a call that was not answered took {crew.longest_wait:.1f} s at most")


@pytest.mark.parametrize("seed", [1])
async def test_each_row_is_one_job_that_ends_once_with_one_report_whatever_is_killed(
    scene: Scene, seed: int
) -> None:
    moments = random.Random(seed).sample(range(110 * len(INGEST)), 9)
    await endure(scene, seed, large=110, small=1, fire=lambda crew: crew.killed_at(moments))


def again_and_again(crew: Crew) -> AbstractAsyncContextManager[asyncio.Event]:
    return crew.under_fire(life=0.7, store_life=2.0)


@pytest.mark.soak
@pytest.mark.timeout(1200)
async def test_a_thousand_jobs_end_once_with_one_report_whatever_is_killed(scene: Scene) -> None:
    seed = int(os.environ.get("MAITRED_SOAK_SEED", secrets.randbelow(1 << 32)))
    tell(f"seed {seed}, {JOBS} jobs")
    await endure(scene, seed, large=JOBS, small=10, fire=again_and_again)


@pytest.mark.parametrize("seed", [1])
async def test_b13_b14_what_failed_is_retried_and_told_once_whatever_is_killed(
    scene: Scene, seed: int
) -> None:
    moments = random.Random(seed).sample(range(50 * len(INGEST)), 6)
    await endure_failures(scene, seed, rows=50, fire=lambda crew: crew.killed_at(moments))


@pytest.mark.soak
@pytest.mark.timeout(1200)
async def test_a_thousand_jobs_fail_and_are_retried_and_told_once_whatever_is_killed(scene: Scene) -> None:
    seed = int(os.environ.get("MAITRED_SOAK_SEED", secrets.randbelow(1 << 32)))
    tell(f"seed {seed}, {JOBS} jobs")
    await endure_failures(scene, seed, rows=JOBS, fire=again_and_again)
