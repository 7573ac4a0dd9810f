"""The client: one method a call of the HTTP API. It raises the errors of `maitred.errors`."""

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import httpx

from maitred.client.problems import error_of
from maitred.client.sending import json_of, path_of, query_of
from maitred.client.stream import EVENT_STREAM
from maitred.client.watching import PAUSES, SILENCE, watch
from maitred.errors import MaitredError, ServerUnreachable
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
        path = path_of(queue, "jobs", id, "events")
        query = {} if version is None else {"version": str(version)}

        @contextlib.asynccontextmanager
        async def connect(had: str | None) -> AsyncIterator[httpx.Response]:
            headers = {"accept": EVENT_STREAM} | ({} if had is None else {"last-event-id": had})
            # What is compressed on the way comes late.
            headers["accept-encoding"] = "identity"
            patience = httpx.Timeout(PATIENCE, read=SILENCE)
            request = self._http.build_request("GET", path, params=query, headers=headers, timeout=patience)
            answer = await self._send(request, stream=True)
            try:
                await _must_be_stream(answer, queue, id)
                yield answer
            finally:
                await answer.aclose()

        async with contextlib.aclosing(watch(connect, last, pauses)) as events:
            async for event in events:
                yield event

    async def jobs(self, queue: str, **query: str) -> Page[JobDocument]:
        """List jobs; the keywords are the query's parameters."""
        return Page[JobDocument].model_validate(await self._call("GET", queue, "jobs", query=query))

    async def line(self, queue: str, limit: int = 50, cursor: str | None = None) -> Page[JobDocument]:
        """Show the waiting jobs in line order."""
        query = {"limit": str(limit)} | ({} if cursor is None else {"cursor": cursor})
        return Page[JobDocument].model_validate(await self._call("GET", queue, "line", query=query))

    async def running(self, queue: str, limit: int = 50, cursor: str | None = None) -> Page[RunningJob]:
        """Show what runs, in the order of the starts."""
        query = {"limit": str(limit)} | ({} if cursor is None else {"cursor": cursor})
        return Page[RunningJob].model_validate(await self._call("GET", queue, "running", query=query))

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
        answer = await self._send(request)
        if answer.is_success:
            return answer.json() if answer.content else None
        raise _refusal(answer, *path)

    async def _send(self, request: httpx.Request, *, stream: bool = False) -> httpx.Response:
        try:
            return await self._http.send(request, stream=stream)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise ServerUnreachable(f"No server answers at {self.address}.") from error


async def _must_be_stream(answer: httpx.Response, queue: str, id: str) -> None:
    """Let a stream pass, or the word that there is no more; raise what anything else says."""
    if answer.status_code == httpx.codes.NO_CONTENT:
        return
    if answer.is_success and answer.headers.get("content-type", "").startswith(EVENT_STREAM):
        return
    await answer.aread()
    raise _refusal(answer, queue, "jobs", id)


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
