"""The client: one method a call of the HTTP API. It raises the errors of `maitred.errors`."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import Any, Unpack

from maitred.client.batches import BatchCalls
from maitred.client.holds import HoldCalls
from maitred.client.keys import KeyCalls
from maitred.client.lists import ListCalls
from maitred.client.sending import in_parts, path_of, plain_job
from maitred.client.stream import read_any_event, read_job_event
from maitred.client.watching import PAUSES, watch
from maitred.errors import Forbidden, JobFailed, MaitredError, UnknownArtifact
from maitred.wire import (
    CheckDocument,
    DeliveryDocument,
    EventName,
    EverythingEvent,
    JobBody,
    JobDocument,
    JobOptions,
    OthersJob,
    OutputDocument,
    Page,
    QueueDocument,
    ReconcileDocument,
    RunningJob,
    StateEvent,
    SubmitterDocument,
    WatchEvent,
    WorkerDocument,
    body_of,
)


class Client(BatchCalls, HoldCalls, KeyCalls, ListCalls):
    """Calls one server; `ServerUnreachable` if it does not answer."""

    async def put(self, queue: str, job: JobBody | Mapping[str, Any]) -> JobDocument:
        """Create or update a job."""
        return JobDocument.model_validate(await self._call("PUT", queue, "jobs", body=plain_job(job)))

    async def put_many(
        self, queue: str, jobs: Sequence[JobBody | Mapping[str, Any]]
    ) -> list[JobDocument | MaitredError]:
        """Create or update up to 1000 jobs; each has its document or its error, in order."""
        return await self._put_all(queue, "jobs", "many", jobs=jobs)

    async def submit(self, queue: str, key: str, **options: Unpack[JobOptions]) -> JobDocument:
        """Create or update the job with this key, said in keywords; see `JobOptions`.

        `await client.submit("default", "essay-1", submitter="user:ada", command=["wc", "essay.txt"])`
        """
        return await self.put(queue, body_of(key, options))

    async def submit_many(
        self, queue: str, jobs: Iterable[JobBody | Mapping[str, Any]]
    ) -> list[JobDocument | MaitredError]:
        """Create or update any number of jobs, 1000 in a call; each has its document or its error, in order.

        If a call fails, those before it were done, and all of them can be submitted again.
        """
        return [answer for some in in_parts(jobs) for answer in await self.put_many(queue, some)]

    async def job(self, queue: str, id: str, version: int | None = None) -> JobDocument:
        """Show a job; `Forbidden` where the key may only see where it is."""
        query = {} if version is None else {"version": str(version)}
        answer = await self._call("GET", queue, "jobs", id, query=query)
        if "key" not in answer:
            raise Forbidden("the job is another submitter's")
        return JobDocument.model_validate(answer)

    async def deliveries(self, queue: str, id: str, version: int | None = None) -> Page[DeliveryDocument]:
        """Show the last tries at a job's callbacks, oldest first."""
        query = {"limit": "500"} | ({} if version is None else {"version": str(version)})
        answer = await self._call("GET", queue, "jobs", id, "deliveries", query=query)
        return Page[DeliveryDocument].model_validate(answer)

    def watch(
        self,
        queue: str,
        id: str,
        version: int | None = None,
        *,
        last: str | None = None,
        pauses: Sequence[float] = PAUSES,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Watch a job's newest version, or the one asked for: its state, its place, and at last its result.

        It ends after a `ResultEvent`, or a `StateEvent` with the state `deleted`. `last` is the id of an
        event to go on after. A connection that breaks is made anew, after each of the `pauses` in turn.
        `UnknownJob` if there is none, also when it was deleted meanwhile; `ServerUnreachable` or
        `StoreUnavailable` when no try helped. Close it (`contextlib.aclosing`) to leave before its end.
        """
        query = {} if version is None else {"version": str(version)}
        connect = self._stream(path_of(queue, "jobs", id, "events"), queue, id, query=query)
        return watch(connect, last, pauses, read_job_event)

    def everything(
        self,
        *,
        queues: Sequence[str] = (),
        names: Sequence[EventName] = (),
        last: str | None = None,
        pauses: Sequence[float] = PAUSES,
    ) -> AsyncGenerator[EverythingEvent, None]:
        """Watch all queues that the key may see, or some, and all events, or those of these `names`.

        It has no end. It goes on after the event with the `event_id` in `last`, and a connection that breaks
        is made anew, as in `watch`. Close it (`contextlib.aclosing`) to leave.
        """
        query = {"queue": list(queues), "event": [str(name) for name in names]}
        connect = self._stream("/api/v1/events", query=query)
        return watch(connect, last, pauses, read_any_event)

    async def wait(
        self,
        queue: str,
        id: str,
        version: int | None = None,
        *,
        check: bool = False,
        timeout: float | None = None,
    ) -> JobDocument:
        """Wait until a job's newest version, or the one asked for, has ended; give it, with its `result`.

        With `check` a job that failed is raised as `JobFailed`. `UnknownJob` if it is deleted meanwhile,
        `TimeoutError` if it takes longer than so many seconds.
        """
        async with asyncio.timeout(timeout):
            async with contextlib.aclosing(self.watch(queue, id, version)) as events:
                async for event in events:
                    if isinstance(event, StateEvent):
                        version = event.version
            job = await self.job(queue, id, version)
        if check and job.state == "failed":
            raise JobFailed(queue, id, job.code or "", job.message or "")
        return job

    async def result(
        self, queue: str, id: str, version: int | None = None, *, timeout: float | None = None
    ) -> Any:
        """Wait for a job, and give what came out of it; `JobFailed` if it failed."""
        return (await self.wait(queue, id, version, check=True, timeout=timeout)).result

    async def output(
        self,
        queue: str,
        id: str,
        version: int | None = None,
        *,
        stream: str | None = None,
        begin: int = 1,
        limit: int = 500,
    ) -> OutputDocument:
        """Show what a job said, pieces from a number on; `next` of the answer is where to go on."""
        query = {"from": str(begin), "limit": str(limit)}
        query |= {} if version is None else {"version": str(version)}
        query |= {} if stream is None else {"stream": stream}
        return OutputDocument.model_validate(
            await self._call("GET", queue, "jobs", id, "output", query=query)
        )

    async def artifact(self, queue: str, id: str, name: str, version: int | None = None) -> bytes:
        """Get a file that a job made; `UnknownArtifact` if it keeps none of that name."""
        if not name:
            raise UnknownArtifact
        query = {} if version is None else {"version": str(version)}
        return await self._bytes("GET", queue, "jobs", id, "artifacts", name, query=query)

    async def jobs(self, /, queue: str, **query: str) -> Page[JobDocument | OthersJob]:
        """List jobs; the keywords are the query's parameters. A submitter's key sees little of others'."""
        answer = await self._call("GET", queue, "jobs", query=query)
        return Page[JobDocument | OthersJob].model_validate(answer)

    async def line(
        self, queue: str, limit: int = 50, cursor: str | None = None
    ) -> Page[JobDocument | OthersJob]:
        """Show the waiting jobs in line order."""
        query = {"limit": str(limit)} | ({} if cursor is None else {"cursor": cursor})
        answer = await self._call("GET", queue, "line", query=query)
        return Page[JobDocument | OthersJob].model_validate(answer)

    async def running(
        self, queue: str, limit: int = 50, cursor: str | None = None
    ) -> Page[RunningJob | OthersJob]:
        """Show what runs, in the order of the starts."""
        query = {"limit": str(limit)} | ({} if cursor is None else {"cursor": cursor})
        answer = await self._call("GET", queue, "running", query=query)
        return Page[RunningJob | OthersJob].model_validate(answer)

    async def workers(self, queue: str) -> Page[WorkerDocument]:
        """Show the workers, 500 at most; `each_worker` gives all."""
        answer = await self._call("GET", queue, "workers", query={"limit": "500"})
        return Page[WorkerDocument].model_validate(answer)

    async def submitter(self, queue: str, type: str, id: str) -> SubmitterDocument:  # noqa: A002 - the wire's word
        """Show what a submitter has in line."""
        answer = await self._call("GET", queue, "submitters", type, id)
        return SubmitterDocument.model_validate(answer)

    async def release(self, queue: str, id: str, nonce: int | None = None) -> JobDocument:
        """Move a job to the front."""
        return await self._move(queue, id, "release", nonce)

    async def delay(self, queue: str, id: str, nonce: int | None = None) -> JobDocument:
        """Move a job to the end."""
        return await self._move(queue, id, "delay", nonce)

    async def shorten(self, queue: str, id: str, seconds: float) -> JobDocument:
        """Let a waiting or running job take only so many seconds."""
        answer = await self._call("POST", queue, "jobs", id, "duration", body={"seconds": seconds})
        return JobDocument.model_validate(answer)

    async def prioritise(self, queue: str, id: str, priority: int) -> JobDocument:
        """Give a waiting job another priority."""
        answer = await self._call(
            "POST", queue, "jobs", id, "priority", body={"priority": priority}, again=True
        )
        return JobDocument.model_validate(answer)

    async def retry(self, queue: str, id: str) -> JobDocument:
        """Let a failed job go on at the stage that failed."""
        return JobDocument.model_validate(await self._call("POST", queue, "jobs", id, "retry"))

    async def cancel(self, queue: str, id: str, reason: str = "") -> JobDocument:
        """End a job that has not ended."""
        answer = await self._call("POST", queue, "jobs", id, "cancel", body={"reason": reason})
        return JobDocument.model_validate(answer)

    async def remove(self, queue: str, id: str) -> None:
        """Delete a job."""
        await self._call("DELETE", queue, "jobs", id)

    async def queues(self) -> Page[QueueDocument]:
        """List the queues, 500 at most; `each_queue` gives all."""
        return Page[QueueDocument].model_validate(await self._call("GET", query={"limit": "500"}))

    async def queue(self, queue: str) -> QueueDocument:
        """Show a queue: what is in it, its slots, and whether it is paused."""
        return QueueDocument.model_validate(await self._call("GET", queue))

    async def pause(self, queue: str, reason: str = "") -> QueueDocument:
        """Let a queue start nothing more."""
        answer = await self._call("POST", queue, "pause", body={"reason": reason}, again=True)
        return QueueDocument.model_validate(answer)

    async def resume(self, queue: str) -> QueueDocument:
        """Let a queue start jobs again."""
        return QueueDocument.model_validate(await self._call("POST", queue, "resume", again=True))

    async def check(self, queue: str, *, repair: bool = False) -> CheckDocument:
        """Look for broken rules in a queue's store; this takes as long as the queue is large."""
        answer = await self._call("POST", queue, "check", body={"repair": repair}, patience=None, again=True)
        return CheckDocument.model_validate(answer)

    async def reconcile(self, queue: str) -> ReconcileDocument:
        """Rebuild a queue's line from its ledger; this takes as long as the queue is large."""
        answer = await self._call("POST", queue, "reconcile", patience=None)
        return ReconcileDocument.model_validate(answer)

    async def _move(self, queue: str, id: str, verb: str, nonce: int | None) -> JobDocument:
        body = None if nonce is None else {"nonce": nonce}
        return JobDocument.model_validate(await self._call("POST", queue, "jobs", id, verb, body=body))
