"""Jobs go through their stages: carried on by one worker, handed from one to another, tried again."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from maitred.core.job import Finish, Job, Lease, Order, Phase, Shift
from maitred.core.reason import waiting_for
from maitred.core.settings import SECOND
from maitred.core.stages import INGEST
from maitred.errors import ConfigError, StoreUnavailable, Transient
from maitred.service.handlers import Handlers
from maitred.store.port import Store
from maitred.wire.codec import encode_json
from maitred.worker import Worker, current_job
from maitred.worker.stage_job import StageJob
from tests.waiting import eventually
from tests.worker.conftest import U1, Kitchen
from tests.working import at_work

TWO = ("downloading", "notify")


class Pipeline(Kitchen):
    """A queue with stages."""

    async def begin(self, *stages: str, **changes: Any) -> None:
        await self.set(stages=stages, **changes)

    async def ingest(self, id: str = "job", **args: Any) -> None:
        """Submit a job for the first stage."""
        body = encode_json({"key": id, "run": {"args": args}})
        await self.store.put([Order(id, U1, self.settings.need(1), body)])

    def serve(self, *stages: str, into: Handlers | None = None) -> list[tuple[str, Any]]:
        """Register functions that note their stage and what they were given, and return their stage."""
        seen: list[tuple[str, Any]] = []

        async def step(job: StageJob) -> str:
            seen.append((job.stage, job.data))
            return job.stage

        for name in stages:
            (self.handlers if into is None else into).register_stage(name, step)
        return seen

    @asynccontextmanager
    async def another(self, handlers: Handlers, slots: int = 1) -> AsyncIterator[Worker]:
        """Run a worker with other functions for the time of the block."""
        worker = Worker(self.store, handlers, slots)
        async with at_work(worker):
            yield worker

    async def reason(self, id: str = "job") -> str | None:
        found = waiting_for(await self.view(id), self.settings)
        return found and found.code

    async def clean(self) -> None:
        assert await self.store.check() == []


def trace(job: Job) -> list[tuple[int, int, str]]:
    return [(run.stage, run.attempt, run.code) for run in job.timeline]


@pytest.fixture
def pipeline(store: Store) -> Pipeline:
    return Pipeline(store)


async def test_b10_one_worker_carries_a_job_through_all_stages(pipeline: Pipeline) -> None:
    await pipeline.begin(*INGEST)
    seen = pipeline.serve(*INGEST)
    async with pipeline.worker(slots=1):
        await pipeline.ingest(url="u")
        job = await pipeline.ended()
    assert seen == list(zip(INGEST, [None, *INGEST[:-1]], strict=True))
    assert (job.state(INGEST), json.loads(job.result)) == ("completed", "notify")
    assert trace(job) == [(stage, 1, "") for stage in range(1, 7)]
    await pipeline.clean()


async def test_many_jobs_go_through_few_slots(pipeline: Pipeline) -> None:
    await pipeline.begin(*INGEST)
    seen = pipeline.serve(*INGEST)
    async with pipeline.worker(slots=3):
        await asyncio.gather(*(pipeline.ingest(f"j{n}") for n in range(40)))
        jobs = [await pipeline.ended(f"j{n}") for n in range(40)]
    assert {job.code for job in jobs} == {""}
    assert len(seen) == 40 * 6
    assert {len(job.timeline) for job in jobs} == {6}
    await pipeline.clean()


async def test_two_workers_that_serve_half_of_the_stages_each_hand_a_job_to_each_other(
    pipeline: Pipeline,
) -> None:
    await pipeline.begin(*INGEST)
    others = Handlers()
    even = pipeline.serve(*INGEST[::2])
    odd = pipeline.serve(*INGEST[1::2], into=others)
    async with pipeline.worker(slots=1) as first, pipeline.another(others) as second:
        await pipeline.ingest()
        job = await pipeline.ended()
    assert ([stage for stage, _ in even], [stage for stage, _ in odd]) == (
        list(INGEST[::2]),
        list(INGEST[1::2]),
    )
    assert [run.worker for run in job.timeline] == [first.name, second.name] * 3
    await pipeline.clean()


async def test_a_job_whose_next_stage_nobody_serves_waits_there_and_says_so(pipeline: Pipeline) -> None:
    await pipeline.begin(*INGEST)
    pipeline.serve(*INGEST[:2])
    async with pipeline.worker(slots=1):
        await pipeline.ingest()

        async def waits() -> bool:
            return (await pipeline.view()).job.stage == 3

        await eventually(waits)
        view = await pipeline.view()
        assert (view.job.state(INGEST), view.job.phase) == ("downloading", Phase.WAITING)
        assert await pipeline.reason() == "no-worker"
        await pipeline.ingest("next")
        await eventually(waits_at(pipeline, "next", 3))
    rest = Handlers()
    seen = pipeline.serve(*INGEST[2:], into=rest)
    async with pipeline.another(rest):
        assert (await pipeline.ended()).state(INGEST) == "completed"
    assert seen[0] == ("downloading", "provisioning"), "what the stage before returned has waited with it"


def waits_at(pipeline: Pipeline, id: str, stage: int) -> Any:
    async def look() -> bool:
        job = (await pipeline.view(id)).job
        return (job.phase, job.stage) == (Phase.WAITING, stage)

    return look


async def test_what_a_stage_sets_stays_with_the_job(pipeline: Pipeline) -> None:
    await pipeline.begin(*TWO)
    seen: list[Any] = []

    def download(job: StageJob) -> None:
        job.priority, job.space_needed, job.message = 9, 77, "as it seems"
        job.identifiers["primary_id"] = "ark:/1"

    async def notify(job: StageJob) -> None:
        seen.append(dict(job.identifiers))
        seen.append(current_job().stage)

    pipeline.handlers.register_stage("downloading", download)
    pipeline.handlers.register_stage("notify", notify)
    async with pipeline.worker(slots=1):
        await pipeline.ingest()
        job = await pipeline.ended()
    assert seen == [{"primary_id": "ark:/1"}, "notify"]
    assert (job.priority, job.space, json.loads(job.identifiers)) == (9, 77, {"primary_id": "ark:/1"})


async def test_a_bad_value_fails_its_job_and_the_worker_goes_on(pipeline: Pipeline) -> None:
    await pipeline.begin(*TWO)

    def download(job: StageJob) -> None:
        job.priority = job.args["priority"]

    pipeline.handlers.register_stage("downloading", download)
    pipeline.serve("notify")
    async with pipeline.worker(slots=1):
        await pipeline.ingest("bad", priority=105)
        await pipeline.ingest("good", priority=99)
        bad, good = await pipeline.ended("bad"), await pipeline.ended("good")
    assert (bad.code, bad.stage, good.code, good.priority) == ("invalid", 1, "", 99)
    assert bad.message == "priority 105 is not allowed; allowed is a whole number from 0 to 99"
    await pipeline.clean()


async def test_a_transient_failure_is_tried_again_in_its_stage(pipeline: Pipeline) -> None:
    await pipeline.begin(*TWO, backoff=SECOND // 100)
    tries: list[int] = []

    async def notify(job: StageJob) -> None:
        tries.append(job.attempt)
        if job.attempt < 3:
            raise Transient("the other side is busy")

    pipeline.serve("downloading")
    pipeline.handlers.register_stage("notify", notify)
    async with pipeline.worker(slots=1):
        await pipeline.ingest()
        job = await pipeline.ended()
    assert (job.code, tries, job.retries) == ("", [1, 2, 3], 0)
    assert trace(job) == [(1, 1, ""), (2, 1, "error"), (2, 2, "error"), (2, 3, "")]
    await pipeline.clean()


async def test_a_transient_failure_that_does_not_pass_ends_with_the_attempts(pipeline: Pipeline) -> None:
    await pipeline.set(attempts=2, backoff=SECOND // 100)

    async def grade() -> None:
        raise Transient("the other side is busy")

    pipeline.handlers.register("grade", grade)
    async with pipeline.worker(slots=1):
        await pipeline.call("grade")
        job = await pipeline.ended()
    assert (job.code, job.message) == ("error", "Transient: the other side is busy")
    assert trace(job) == [(1, 1, "error"), (1, 2, "error")]
    await pipeline.clean()


async def test_each_stage_has_the_whole_time_limit(pipeline: Pipeline) -> None:
    await pipeline.begin(*TWO, time_limit=1.0)

    async def download(_job: StageJob) -> None:
        await asyncio.sleep(0.05)

    async def notify(_job: StageJob) -> None:
        await asyncio.Event().wait()

    pipeline.handlers.register_stage("downloading", download)
    pipeline.handlers.register_stage("notify", notify)
    async with pipeline.worker(slots=1):
        await pipeline.ingest()
        job = await pipeline.ended()
    assert trace(job) == [(1, 1, ""), (2, 1, "time-limit")]
    assert job.timeline[1].end - job.timeline[1].start >= pipeline.settings.time_limit


async def test_an_answer_that_is_lost_between_stages_loses_no_stage_and_doubles_none(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    await pipeline.begin(*TWO, lease=1.0)
    seen = pipeline.serve(*TWO)
    finish = pipeline.store.finish
    lost: list[Shift] = []

    async def unheard(worker: str, results: Sequence[Finish]) -> Shift:
        shift = await finish(worker, results)
        if not lost:
            lost.append(shift)
            raise StoreUnavailable
        return shift

    monkeypatch.setattr(pipeline.store, "finish", unheard)
    async with pipeline.worker(slots=1):
        await pipeline.ingest()
        job = await pipeline.ended()
    assert [stage for stage, _ in seen] == list(TWO)
    assert trace(job) == [(1, 1, ""), (2, 1, "")]
    await pipeline.clean()


async def test_an_end_that_is_not_heard_of_does_not_stop_the_next_stage(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call that ends the first stage hangs, while renewing brings the second one, and goes on."""
    await pipeline.begin(*TWO, lease=1.0)
    finish, renew = pipeline.store.finish, pipeline.store.renew
    heard, renewed, ends = asyncio.Event(), asyncio.Event(), 0
    renewals: list[list[int]] = []

    async def hanging(worker: str, results: Sequence[Finish]) -> Shift:
        nonlocal ends
        ends += 1
        hangs = ends == 1
        shift = await finish(worker, results)
        if hangs:
            await heard.wait()
        return shift

    async def counting(worker: str, held: Sequence[Lease]) -> Shift:
        shift = await renew(worker, held)
        renewals.append([lease.record for lease in held])
        return shift

    async def notify(job: StageJob) -> str:
        so_far = len(renewals)

        async def often() -> bool:
            return len(renewals) >= so_far + 3

        await eventually(often)
        renewed.set()
        return job.stage

    monkeypatch.setattr(pipeline.store, "finish", hanging)
    monkeypatch.setattr(pipeline.store, "renew", counting)
    pipeline.serve("downloading")
    pipeline.handlers.register_stage("notify", notify)
    async with pipeline.worker(slots=1):
        await pipeline.ingest()
        await renewed.wait()
        heard.set()
        job = await pipeline.ended()
    assert trace(job) == [(1, 1, ""), (2, 1, "")]
    assert all(len(named) == len(set(named)) for named in renewals), (
        "a job is named once, by its newest lease"
    )
    await pipeline.clean()


async def test_a_lease_that_is_lost_in_a_later_stage_ends_the_work(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    await pipeline.begin(*TWO, lease=1.0, attempts=1)
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def notify(_job: StageJob) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async def away(*_: Any) -> Any:
        raise StoreUnavailable

    pipeline.serve("downloading")
    pipeline.handlers.register_stage("notify", notify)
    async with pipeline.worker(slots=1):
        await pipeline.ingest()
        await begun.wait()
        with monkeypatch.context() as patch:
            patch.setattr(pipeline.store, "renew", away)
            await cancelled.wait()


async def test_a_worker_that_stops_hands_the_next_stage_to_another(pipeline: Pipeline) -> None:
    await pipeline.begin(*TWO, grace=5.0)
    begun, gate = asyncio.Event(), asyncio.Event()

    async def download(_job: StageJob) -> str:
        begun.set()
        await gate.wait()
        return "file"

    pipeline.handlers.register_stage("downloading", download)
    mine = pipeline.serve("notify")
    async with pipeline.worker(slots=1) as first:
        await pipeline.ingest()
        await begun.wait()
        first.stop()

        async def drains() -> bool:
            return all(worker.draining for worker in (await pipeline.store.status()).workers)

        await eventually(drains)
        gate.set()
    waiting = (await pipeline.view()).job
    assert (waiting.phase, waiting.stage, mine) == (Phase.WAITING, 2, [])
    others = Handlers()
    theirs = pipeline.serve("notify", into=others)
    async with pipeline.another(others):
        job = await pipeline.ended()
    assert (theirs, job.code) == ([("notify", "file")], "")
    assert [entry[2] for entry in trace(job)][-1] == ""
    await pipeline.clean()


async def test_cancelling_in_a_later_stage_stops_it_and_frees_the_slot(pipeline: Pipeline) -> None:
    await pipeline.begin(*TWO)
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def notify(_job: StageJob) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    pipeline.serve("downloading")
    pipeline.handlers.register_stage("notify", notify)
    async with pipeline.worker(slots=1):
        await pipeline.ingest()
        await begun.wait()
        await pipeline.store.cancel("job", "enough")
        await cancelled.wait()
        job = await pipeline.ended()
    assert (job.code, job.stage) == ("cancelled", 2)
    await pipeline.clean()


async def test_a_function_for_a_stage_that_the_queue_does_not_have_stops_the_worker_at_its_start(
    pipeline: Pipeline,
) -> None:
    await pipeline.begin(*TWO)
    pipeline.serve("storing")
    with pytest.raises(ConfigError, match="has no stage 'storing'; its stages are downloading, notify"):
        await Worker(pipeline.store, pipeline.handlers, 1).run()


async def test_a_worker_without_functions_serves_nothing_in_a_queue_with_stages(pipeline: Pipeline) -> None:
    await pipeline.begin(*TWO)
    async with pipeline.worker(slots=1):

        async def joined() -> bool:
            return bool((await pipeline.store.status()).workers)

        await eventually(joined)
        [worker] = (await pipeline.store.status()).workers
        assert worker.serves == ()
        await pipeline.ingest()
        assert await pipeline.reason() == "no-worker"


async def test_a_job_that_does_not_fit_waits_for_space_until_another_ends(pipeline: Pipeline) -> None:
    await pipeline.begin("estimating", "provisioning", space=100)
    gate = asyncio.Event()

    def estimate(job: StageJob) -> None:
        job.space_needed = job.args["size"]

    async def provision(_job: StageJob) -> None:
        await gate.wait()

    pipeline.handlers.register_stage("estimating", estimate)
    pipeline.handlers.register_stage("provisioning", provision)
    async with pipeline.worker(slots=3):
        await pipeline.ingest("first", size=80)
        await eventually(at_stage(pipeline, "first", 2))
        await pipeline.ingest("second", size=50)
        await eventually(waits_at(pipeline, "second", 2))
        view = await pipeline.view("second")
        reason = waiting_for(view, pipeline.settings)
        assert reason == ("space", "needs 50 B of space, 20 B of 100 B is free")
        await pipeline.ingest("giant", size=101)
        assert (await pipeline.ended("giant")).code == "space"
        gate.set()
        assert [(await pipeline.ended(id)).code for id in ("first", "second")] == ["", ""]
    assert (await pipeline.view("second")).space_free == 100, "all of it was given back"
    await pipeline.clean()


def at_stage(pipeline: Pipeline, id: str, stage: int) -> Any:
    async def look() -> bool:
        job = (await pipeline.view(id)).job
        return (job.phase, job.stage) == (Phase.RUNNING, stage)

    return look


async def test_b18_a_held_profile_keeps_a_job_from_its_next_stage_and_says_why(pipeline: Pipeline) -> None:
    await pipeline.begin(*TWO)
    gate = asyncio.Event()

    async def download(_job: StageJob) -> str:
        await gate.wait()
        return "file"

    pipeline.handlers.register_stage("downloading", download)
    seen = pipeline.serve("notify")
    async with pipeline.worker(slots=1):
        body = encode_json({"key": "job", "run": {"args": {}}})
        await pipeline.store.put([Order("job", U1, pipeline.settings.need(1), body, profile="p")])
        await eventually(at_stage(pipeline, "job", 1))
        await pipeline.store.hold("profile", "p", "ann", "bad disk")
        gate.set()
        job = await pipeline.until(Phase.HELD)
        assert (job.state(TWO), job.stage, seen) == ("held", 2, [])
        reason = waiting_for(await pipeline.view(), pipeline.settings)
        assert reason == ("held", "its profile is held by ann: bad disk")
        await pipeline.store.unhold("profile", "p")
        assert (await pipeline.ended()).code == ""
    assert seen == [("notify", "file")]
    await pipeline.clean()
