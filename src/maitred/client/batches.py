"""Calls about batches: submit, add to, seal, look at, watch, report, retry and delete."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from maitred.client.calling import Caller
from maitred.client.problems import error_of
from maitred.client.sending import in_parts, path_of, plain_job
from maitred.client.stream import read_batch_event
from maitred.client.watching import PAUSES, watch
from maitred.errors import MaitredError
from maitred.wire import (
    BatchDocument,
    BatchEvent,
    JobBody,
    JobDocument,
    Page,
    ReportDocument,
    RetriedDocument,
    submitter_of,
)


class BatchCalls(Caller):
    """What can be asked about the batches of a queue."""

    async def submit_batch(self, queue: str, batch: Mapping[str, Any]) -> BatchDocument:
        """Submit a batch; this submitter's known `external_id` gives the batch that has it."""
        known = batch.get("external_id") is not None
        answer = await self._call("POST", queue, "batches", body=dict(batch), again=known)
        return BatchDocument.model_validate(answer)

    async def open_batch(
        self, /, queue: str, *, submitter: str | tuple[str, str], external_id: str | None = None, **more: Any
    ) -> BatchDocument:
        """Open an empty batch, to which jobs are added until it is sealed; `more` as in `submit_batch`."""
        named = {} if external_id is None else {"external_id": external_id}
        whose = {"submitter": submitter_of(submitter), **named}
        return await self.submit_batch(queue, {"jobs": [], "seal": False, **whose, **more})

    async def add_jobs(
        self, queue: str, id: str, jobs: Iterable[JobBody | Mapping[str, Any]]
    ) -> list[JobDocument | MaitredError]:
        """Add jobs to an open batch, 1000 in a call; each has its document or its error, in order."""
        return [
            answer
            for some in in_parts(jobs)
            for answer in await self._put_all(queue, "batches", id, "jobs", jobs=some)
        ]

    async def seal_batch(self, queue: str, id: str) -> BatchDocument:
        """Say that the last job is in."""
        return BatchDocument.model_validate(await self._call("POST", queue, "batches", id, "seal"))

    async def batch(self, queue: str, id: str) -> BatchDocument:
        """Show a batch."""
        return BatchDocument.model_validate(await self._call("GET", queue, "batches", id))

    async def batches(self, /, queue: str, **query: str) -> Page[BatchDocument]:
        """List batches, newest first; the keywords are the query's parameters."""
        return Page[BatchDocument].model_validate(await self._call("GET", queue, "batches", query=query))

    async def report(self, queue: str, id: str) -> ReportDocument:
        """Show the last report of a batch; `NoReport` if there is none yet."""
        return ReportDocument.model_validate(await self._call("GET", queue, "batches", id, "report"))

    async def retry_batch(self, queue: str, id: str) -> int:
        """Retry the failed jobs of a batch; give how many that were. A large batch takes its time."""
        answer = await self._call("POST", queue, "batches", id, "retry", patience=None)
        return RetriedDocument.model_validate(answer).retried

    async def update_report(self, queue: str, id: str) -> BatchDocument:
        """Ask for a report of what changed since the last one."""
        return BatchDocument.model_validate(await self._call("POST", queue, "batches", id, "update-report"))

    async def remove_batch(self, queue: str, id: str) -> None:
        """Delete a batch with its jobs, all of which have ended."""
        await self._call("DELETE", queue, "batches", id)

    def watch_batch(
        self, queue: str, id: str, *, last: str | None = None, pauses: Sequence[float] = PAUSES
    ) -> AsyncGenerator[BatchEvent, None]:
        """Watch a batch: its state and counts, and its report, after which it ends.

        It goes on after the event with the id `last`, and a connection that breaks is made anew, as in
        `watch`. `UnknownBatch` if there is none. Close it (`contextlib.aclosing`) to leave before its end.
        """
        connect = self._stream(path_of(queue, "batches", id, "events"), queue, id)
        return watch(connect, last, pauses, read_batch_event)

    async def wait_batch(self, queue: str, id: str, *, timeout: float | None = None) -> ReportDocument:
        """Wait until a batch is reported, and give the report.

        `UnknownBatch` if it is deleted meanwhile, `TimeoutError` if it takes longer than so many seconds.
        """
        async with asyncio.timeout(timeout):
            async with aclosing(self.watch_batch(queue, id)) as events:
                async for _ in events:
                    pass
            return await self.report(queue, id)

    async def _put_all(
        self, queue: str, *path: str, jobs: Sequence[JobBody | Mapping[str, Any]]
    ) -> list[JobDocument | MaitredError]:
        """Send many jobs in one call, which may be made again: a job is known by its key."""
        bodies = [plain_job(job) for job in jobs]
        answer = await self._call("POST", queue, *path, body=bodies, again=True)
        return [
            JobDocument.model_validate(item) if "id" in item else error_of(item, queue=queue)
            for item in answer["items"]
        ]
