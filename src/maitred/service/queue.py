"""The queue as Python programs see it: submit jobs, look at them, move them, and register handlers.

    q = maitred.Queue("grading")

    @q.handler("grade")
    async def grade(assignment: int) -> float: ...

    job = await q.put("assignment-3/ada", submitter="user:ada", handler="grade", args={"assignment": 3})

In a queue with stages each has a function, and jobs bring arguments only:

    @q.stage("downloading")
    def download(job: maitred.StageJob) -> dict[str, str]: ...

    job = await q.put("object-7", submitter="user:ada", args={"url": "https://example.org/7"})

The store is found, and connected to, at the first call. Everything is a coroutine; `q.sync` has the same
methods for programs without a loop.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from maitred.core.job import Submitter
from maitred.errors import Fault, InvalidJob, MaitredError
from maitred.service.desk import Desk
from maitred.service.handlers import F, Handlers
from maitred.service.intake import Accepted
from maitred.service.order import read_submitter
from maitred.service.whereabouts import DATA, find_store
from maitred.store.port import Stores
from maitred.wire import (
    BatchBody,
    BatchDocument,
    DeliveryDocument,
    JobBody,
    JobDocument,
    JobOptions,
    OutputDocument,
    Page,
    ProfileDocument,
    ReportDocument,
    SubmitterDocument,
    body_of,
)

if TYPE_CHECKING:
    from maitred.service.sync import SyncQueue


# Who did it, where a program has no other name.
PROGRAM = "program"
LOWEST_PRIORITY = 99
MOST_DELIVERIES = 500


class Queue:
    """One queue. Its methods raise the errors of `maitred.errors`; `UnknownQueue` if nobody configured it."""

    def __init__(self, name: str, store: str | Stores | None = None, *, data: Path = DATA) -> None:
        """Name the queue and its store: a url, an open store, or None for the one that settings name."""
        self.name = name
        self.handlers = Handlers()
        self.where = store
        self._data = data
        self._desk: Desk | None = None

    def handler(self, name: str) -> Callable[[F], F]:
        """Register a sync or async function under a name; workers call it with a job's `args`."""

        def register(function: F) -> F:
            return self.handlers.register(name, function)

        return register

    def stage(self, name: str) -> Callable[[F], F]:
        """Register a sync or async function for a stage; workers call it with the job.

        What it returns is the next stage's `job.data`, and after the last one the job's result.
        """

        def register(function: F) -> F:
            return self.handlers.register_stage(name, function)

        return register

    async def put(self, key: str, **options: Unpack[JobOptions]) -> Accepted:
        """Create or update the job with this key; give its `id`, the `outcome` and the `version`.

        It runs a handler with `args`, a `command`, or a `script`, which is a list of steps.
        `submitter` is `"user:7"`, `"team:red"` or a `Submitter`. With a class, or a `duration` in seconds,
        the job is sure to get that long; with neither it is elastic. Raises `InvalidJob` with all faults,
        `TooLarge`, `OtherSubmitter`, `LongerDuration` or `QueueFull`; then nothing was changed.
        """
        who = _who(options["submitter"])
        return await self.desk.submit(self.name, body_of(key, {**options, "submitter": who}))

    async def put_many(self, jobs: Sequence[JobBody | Mapping[str, Any]]) -> list[Accepted | MaitredError]:
        """Create or update many jobs, as fast as the store can.

        Each is a body as HTTP has it. The answers are in order: what was accepted, or the error that `put`
        would raise.
        """
        return await self.desk.accept(self.name, jobs)

    async def job(self, id: str, version: int | None = None) -> JobDocument:
        """Give a job's document; `UnknownJob` if there is none."""
        return JobDocument.model_validate(await self.desk.read(self.name, id, version))

    async def output(
        self,
        id: str,
        version: int | None = None,
        *,
        stream: str | None = None,
        begin: int = 1,
        limit: int = 500,
    ) -> OutputDocument:
        """Give what a job said, pieces from a number on; `next` is where to go on. `UnknownJob`."""
        said = await self.desk.outputs.output(self.name, id, version, stream=stream, begin=begin, limit=limit)
        return OutputDocument.model_validate(said)

    async def artifact(self, id: str, name: str, version: int | None = None) -> bytes:
        """Give a file that a job made; `UnknownJob` or `UnknownArtifact`."""
        return (await self.desk.outputs.artifact(self.name, id, name, version)).data

    async def deliveries(self, id: str, version: int | None = None) -> list[DeliveryDocument]:
        """Give the last tries to tell a job's response address of it, oldest first; or `UnknownJob`."""
        page = await self.desk.deliveries(self.name, id, version, limit=MOST_DELIVERIES)
        return Page[DeliveryDocument].model_validate(page).items

    async def line(self, limit: int = 50, cursor: str | None = None) -> Page[JobDocument]:
        """Give the first waiting jobs in line order, or those after a `cursor`."""
        return Page[JobDocument].model_validate(await self.desk.line(self.name, cursor, limit))

    async def release(self, id: str, nonce: int | None = None) -> JobDocument:
        """Move a job to the front; `UnknownJob`, `NotWaiting`, `NotMovable` or `OtherNonce`."""
        return JobDocument.model_validate(await self.desk.release(self.name, id, nonce))

    async def delay(self, id: str, nonce: int | None = None) -> JobDocument:
        """Move a job behind all others of its band and priority; the same errors as `release`."""
        return JobDocument.model_validate(await self.desk.delay(self.name, id, nonce))

    async def remove(self, id: str) -> None:
        """Delete a job with all its versions; `UnknownJob` if there is none."""
        await self.desk.remove(self.name, id)

    async def cancel(self, id: str, reason: str = "") -> JobDocument:
        """End a job that has not ended; `UnknownJob`, or `AlreadyEnded`."""
        return JobDocument.model_validate(await self.desk.cancel(self.name, id, by=PROGRAM, reason=reason))

    async def shorten(self, id: str, seconds: float) -> JobDocument:
        """Let a waiting or running job take only so many seconds; below what it has run, it stops.

        Raises `InvalidJob`, `UnknownJob`, `AlreadyEnded`, `LongerDuration`, or `Interactive`.
        """
        return JobDocument.model_validate(await self.desk.shorten(self.name, id, seconds))

    async def prioritise(self, id: str, priority: int) -> JobDocument:
        """Give a waiting job another priority; `UnknownJob` or `NotWaiting`."""
        if not 0 <= priority <= LOWEST_PRIORITY:
            raise InvalidJob([Fault("priority", f"must be a whole number from 0 to {LOWEST_PRIORITY}")])
        return JobDocument.model_validate(await self.desk.prioritise(self.name, id, priority))

    async def retry(self, id: str) -> JobDocument:
        """Let a failed job go on at the stage that failed.

        Raises `UnknownJob`, `NotFailed`, `Interactive` or `BatchReporting`.
        """
        return JobDocument.model_validate(await self.desk.retry(self.name, id))

    # ---------------------------------------------------------------- holds

    async def hold(self, id: str, reason: str = "") -> JobDocument:
        """Hold a job, at once if it waits, else before its next stage; `UnknownJob` or `AlreadyEnded`."""
        held = await self.desk.holds.job(self.name, id, by=PROGRAM, reason=reason)
        return JobDocument.model_validate(held)

    async def resume(self, id: str) -> JobDocument:
        """Take a job's own hold away; `UnknownJob` or `NotHeld`."""
        return JobDocument.model_validate(await self.desk.holds.resume_job(self.name, id))

    async def hold_submitter(self, submitter: str | Submitter, reason: str = "") -> SubmitterDocument:
        """Hold what a submitter has, whenever a place of it comes up or a stage ends."""
        held = await self.desk.holds.submitter(self.name, _who(submitter), by=PROGRAM, reason=reason)
        return SubmitterDocument.model_validate(held)

    async def resume_submitter(self, submitter: str | Submitter) -> SubmitterDocument:
        """Let a submitter's jobs go on."""
        resumed = await self.desk.holds.resume_submitter(self.name, _who(submitter))
        return SubmitterDocument.model_validate(resumed)

    async def hold_profile(self, name: str, reason: str = "") -> ProfileDocument:
        """Hold all jobs of a profile; `NotFound` if the queue names its profiles and this is none."""
        held = await self.desk.holds.profile(self.name, name, by=PROGRAM, reason=reason)
        return ProfileDocument.model_validate(held)

    async def resume_profile(self, name: str) -> ProfileDocument:
        """Let a profile's jobs go on."""
        return ProfileDocument.model_validate(await self.desk.holds.resume_profile(self.name, name))

    # ---------------------------------------------------------------- batches

    async def submit_batch(self, batch: BatchBody | Mapping[str, Any]) -> BatchDocument:
        """Submit a batch, a body as HTTP has it; a server expands and reports it.

        The same `external_id` again gives the batch that has it. Raises `InvalidJob` with all faults,
        `TooLarge`, or `OtherSubmitter` if that external id is another's.
        """
        return BatchDocument.model_validate(await self.desk.batches.create(self.name, batch))

    async def add_jobs(
        self, batch: str, jobs: Sequence[JobBody | Mapping[str, Any]]
    ) -> list[Accepted | MaitredError]:
        """Add jobs to an open batch, as `put_many` has them; `UnknownBatch` or `BatchSealed`.

        One that the batch has already is passed over: its outcome is `known`.
        """
        return await self.desk.batches.accept(self.name, batch, jobs)

    async def seal_batch(self, batch: str) -> BatchDocument:
        """Say that the last job is in; `UnknownBatch` or `BatchSealed`."""
        return BatchDocument.model_validate(await self.desk.batches.seal(self.name, batch))

    async def batch(self, batch: str) -> BatchDocument:
        """Give a batch's document; `UnknownBatch` if there is none."""
        return BatchDocument.model_validate(await self.desk.batches.read(self.name, batch))

    async def batches(
        self,
        *,
        state: str | None = None,
        external_id: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[BatchDocument]:
        """Give the newest batches, or those after a `cursor`."""
        page = await self.desk.batches.page(self.name, state, external_id, cursor, limit)
        return Page[BatchDocument].model_validate(page)

    async def report(self, batch: str) -> ReportDocument:
        """Give the last report of a batch; `UnknownBatch`, or `NoReport` if there is none yet."""
        return ReportDocument.model_validate(await self.desk.batches.report(self.name, batch))

    async def hold_batch(self, batch: str, reason: str = "") -> BatchDocument:
        """Hold a batch with its jobs; `UnknownBatch`, or `IllegalMove` if it is past that."""
        held = await self.desk.batches.hold(self.name, batch, by=PROGRAM, reason=reason)
        return BatchDocument.model_validate(held)

    async def resume_batch(self, batch: str) -> BatchDocument:
        """Let a batch go on; `UnknownBatch` or `NotHeld`."""
        return BatchDocument.model_validate(await self.desk.batches.resume(self.name, batch))

    async def retry_batch(self, batch: str) -> int:
        """Retry the failed jobs of a batch; give how many that were. `UnknownBatch` or `BatchReporting`."""
        return await self.desk.batches.retry(self.name, batch)

    async def update_report(self, batch: str) -> BatchDocument:
        """Ask for a report of what changed since the last; `UnknownBatch`, or `IllegalMove` unless failed."""
        return BatchDocument.model_validate(await self.desk.batches.update_report(self.name, batch))

    async def remove_batch(self, batch: str) -> None:
        """Delete a batch with its jobs; `UnknownBatch`, `BatchUnfinished` or `BatchReporting`."""
        await self.desk.batches.remove(self.name, batch)

    @cached_property
    def sync(self) -> "SyncQueue":
        """The same methods for programs without a loop; they block until the answer is there."""
        from maitred.service.sync import SyncQueue  # noqa: PLC0415 - it is made of this class's methods

        return SyncQueue(lambda: Queue(self.name, self.where, data=self._data))

    @property
    def desk(self) -> Desk:
        """The desk that this queue asks; the first use finds the store."""
        if self._desk is None:
            self._desk = Desk(find_store(self.where, self._data))
        return self._desk

    def ask(self, store: str | Stores | None) -> None:
        """Ask another store from now on, named as for a new queue; `close` first what was opened."""
        self.where, self._desk = store, None
        if "sync" in vars(self):
            self.sync.forget()

    async def close(self) -> None:
        """Give back the connections that this queue opened; it may be used again."""
        desk, self._desk = self._desk, None
        if desk is not None and desk.stores is not self.where:
            await desk.stores.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _who(submitter: str | tuple[str, str]) -> Submitter:
    return read_submitter(submitter) if isinstance(submitter, str) else Submitter(*submitter)
