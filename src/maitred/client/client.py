"""The client: one method a call of the HTTP API. It raises the errors of `maitred.errors`."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from time import monotonic
from types import TracebackType
from typing import Any, Self

import httpx

from maitred.client.events import is_last, read_events
from maitred.client.problems import error_of
from maitred.client.sending import json_of, path_of, query_of
from maitred.errors import MaitredError, ServerUnreachable, StoreUnavailable
from maitred.wire import (
    CheckDocument,
    JobBody,
    JobDocument,
    Page,
    QueueDocument,
    RunningJob,
    SubmitterDocument,
    WatchEvent,
    WorkerDocument,
)

PATIENCE = 30.0
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0


class Client:
    """Calls one server; `ServerUnreachable` if it does not answer."""

    def __init__(self, address: str, *, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.address = address
        self._http = httpx.AsyncClient(
            base_url=address,
            timeout=PATIENCE,
            transport=transport,
            trust_env=False,
            # Over plain http nothing is verified (redirects are not followed), and reading all the world's
            # certificates takes longer than the call.
            verify=not address.lower().startswith("http:"),
        )

    async def put(self, queue: str, job: JobBody | Mapping[str, Any]) -> JobDocument:
        """Create or update a job."""
        return JobDocument.model_validate(await self._call("PUT", queue, "jobs", body=_plain(job)))

    async def put_many(
        self, queue: str, jobs: Sequence[JobBody | Mapping[str, Any]]
    ) -> list[JobDocument | MaitredError]:
        """Create or update up to 1000 jobs; each has its document or its error, in order."""
        answer = await self._call("POST", queue, "jobs", "many", body=[_plain(job) for job in jobs])
        return [
            JobDocument.model_validate(item) if "id" in item else error_of(item, queue=queue)
            for item in answer["items"]
        ]

    async def job(self, queue: str, id: str, version: int | None = None) -> JobDocument:
        """Show a job."""
        query = {} if version is None else {"version": str(version)}
        return JobDocument.model_validate(await self._call("GET", queue, "jobs", id, query=query))

    async def events(
        self, queue: str, id: str, version: int | None = None, *, last: str | None = None
    ) -> AsyncGenerator[WatchEvent, None]:
        """Watch a job's newest version, or the one asked for, until it has ended or was deleted.

        A connection that is lost is made again, and goes on after the last event; `last` is the id of one
        that was had before. Raises `UnknownJob`; `ServerUnreachable` if no server answers for half a minute.
        """
        pause, given_up = FIRST_PAUSE, monotonic() + PATIENCE
        while True:
            try:
                async with self._stream(queue, id, version, last) as answer:
                    if answer.status_code == httpx.codes.NO_CONTENT:
                        return
                    async for event in read_events(answer.aiter_lines()):
                        last = event.id or last
                        pause, given_up = FIRST_PAUSE, monotonic() + PATIENCE
                        yield event
                        if is_last(event):
                            return
            except (ServerUnreachable, StoreUnavailable):
                if monotonic() > given_up:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def jobs(self, queue: str, **query: str) -> Page[JobDocument]:
        """List jobs; the keywords are the query's parameters."""
        return Page[JobDocument].model_validate(await self._call("GET", queue, "jobs", query=query))

    async def line(self, queue: str, limit: int = 50, cursor: str | None = None) -> Page[JobDocument]:
        """Show the waiting jobs in line order."""
        query = {"limit": str(limit)} | ({} if cursor is None else {"cursor": cursor})
        return Page[JobDocument].model_validate(await self._call("GET", queue, "line", query=query))

    async def running(self, queue: str) -> Page[RunningJob]:
        """Show what runs."""
        return Page[RunningJob].model_validate(await self._call("GET", queue, "running"))

    async def workers(self, queue: str) -> Page[WorkerDocument]:
        """Show the workers."""
        return Page[WorkerDocument].model_validate(await self._call("GET", queue, "workers"))

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

    async def cancel(self, queue: str, id: str, reason: str = "") -> JobDocument:
        """End a job that has not ended."""
        answer = await self._call("POST", queue, "jobs", id, "cancel", body={"reason": reason})
        return JobDocument.model_validate(answer)

    async def remove(self, queue: str, id: str) -> None:
        """Delete a job."""
        await self._call("DELETE", queue, "jobs", id)

    async def queues(self) -> Page[QueueDocument]:
        """List the queues."""
        return Page[QueueDocument].model_validate(await self._call("GET"))

    async def queue(self, queue: str) -> QueueDocument:
        """Show a queue: what is in it, its slots, and whether it is paused."""
        return QueueDocument.model_validate(await self._call("GET", queue))

    async def pause(self, queue: str, reason: str = "") -> QueueDocument:
        """Let a queue start nothing more."""
        return QueueDocument.model_validate(await self._call("POST", queue, "pause", body={"reason": reason}))

    async def resume(self, queue: str) -> QueueDocument:
        """Let a queue start jobs again."""
        return QueueDocument.model_validate(await self._call("POST", queue, "resume"))

    async def check(self, queue: str, *, repair: bool = False) -> CheckDocument:
        """Look for broken rules in a queue's store; this takes as long as the queue is large."""
        answer = await self._call("POST", queue, "check", body={"repair": repair}, patience=None)
        return CheckDocument.model_validate(answer)

    async def close(self) -> None:
        """Give back the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _move(self, queue: str, id: str, verb: str, nonce: int | None) -> JobDocument:
        body = None if nonce is None else {"nonce": nonce}
        return JobDocument.model_validate(await self._call("POST", queue, "jobs", id, verb, body=body))

    @asynccontextmanager
    async def _stream(
        self, queue: str, id: str, version: int | None, last: str | None
    ) -> AsyncGenerator[httpx.Response, None]:
        """Open the stream of a job's events."""
        path = ("jobs", id, "events")
        query = {} if version is None else {"version": str(version)}
        headers = {} if last is None else {"last-event-id": last}
        try:
            async with self._http.stream(
                "GET", path_of(queue, *path), params=query, headers=headers
            ) as answer:
                if not answer.is_success:
                    await answer.aread()
                    raise _refusal(answer, queue, *path)
                yield answer
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise ServerUnreachable(f"No server answers at {self.address}.") from error

    async def _call(
        self,
        method: str,
        *path: str,
        query: Mapping[str, str] | None = None,
        body: object = None,
        patience: float | None = PATIENCE,
    ) -> Any:
        """Make a call to a path below the queues; its parts are encoded here."""
        request = self._http.build_request(
            method,
            path_of(*path),
            params=query_of(query) if query else None,
            content=None if body is None else json_of(body),
            headers={} if body is None else {"content-type": "application/json"},
            timeout=patience,
        )
        try:
            answer = await self._http.send(request)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise ServerUnreachable(f"No server answers at {self.address}.") from error
        if answer.is_success:
            return answer.json() if answer.content else None
        raise _refusal(answer, *path)


def _refusal(answer: httpx.Response, queue: str = "", _kind: str = "", id: str = "", *_: str) -> MaitredError:
    try:
        return error_of(answer.json(), queue=queue, id=id)
    except (ValueError, AttributeError, LookupError):
        return ServerUnreachable(
            f"What answers at {answer.request.url.host} is no Maitred server: it says {answer.status_code}."
        )


def _plain(job: JobBody | Mapping[str, Any]) -> Any:
    if isinstance(job, JobBody):
        return job.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return dict(job)
