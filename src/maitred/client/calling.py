"""Calling a server: connections, requests, streams, and refusals as the errors that they tell of."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Self

import httpx

from maitred.client.problems import error_of
from maitred.client.retrying import PATIENCE, RETRIES, Question, is_unheard, pause_after
from maitred.client.sending import json_of, key_header, path_of, query_of
from maitred.client.stream import EVENT_STREAM
from maitred.client.watching import SILENCE, Connect
from maitred.errors import MaitredError, NotFound, ServerUnreachable, StoreUnavailable, TooOften


class Caller:
    """The connections to one server."""

    def __init__(
        self,
        address: str,
        *,
        key: str | None = None,
        retries: Sequence[float] = RETRIES,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Name the server, and the API key to call it with, if it needs one.

        What is safe to ask again is asked again when there was no answer, after each of the `retries` in
        turn, in seconds; `()` is never.
        """
        self.address = address
        self._retries = tuple(retries)
        self._http = httpx.AsyncClient(
            base_url=address,
            headers=key_header(key),
            timeout=PATIENCE,
            transport=transport,
            trust_env=False,
            # Over plain http nothing is verified (redirects are not followed), and reading all the world's
            # certificates takes longer than the call.
            verify=not address.lower().startswith("http:"),
        )

    async def close(self) -> None:
        """Give back the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _call(
        self,
        method: str,
        *path: str,
        query: Mapping[str, str] | None = None,
        body: object = None,
        patience: float | None = PATIENCE,
        again: bool = False,
    ) -> Any:
        """Make a call to a path below the queues; its parts are encoded here. Give the JSON of the answer.

        A POST that may be done twice without harm may be made `again`.
        """
        content = await self._bytes(method, *path, query=query, body=body, patience=patience, again=again)
        return json.loads(content) if content else None

    async def _bytes(
        self,
        method: str,
        *path: str,
        query: Mapping[str, str] | None = None,
        body: object = None,
        patience: float | None = PATIENCE,
        again: bool = False,
    ) -> bytes:
        """Make a call to a path below the queues, and give the bytes of the answer."""
        queue, _, id = (*path, "", "", "")[:3]
        question = Question(method, path_of(*path), queue, id, again=again, patience=patience)
        return await self._ask(question, query=query, body=body)

    async def _ask(
        self, question: Question, *, query: Mapping[str, str] | None = None, body: object = None
    ) -> bytes:
        """Make a call, again if that is safe and there was no answer; a refusal is of its queue and id."""
        params = query_of(query) if query else None
        content = None if body is None else json_of(body)
        doubt = False
        for pause in (*self._retries, None):
            request = self._http.build_request(
                question.method,
                question.path,
                params=params,
                content=content,
                headers={} if content is None else {"content-type": "application/json"},
                timeout=question.patience,
            )
            try:
                return await self._answer(request, question)
            except NotFound:
                if doubt and question.method == "DELETE":
                    # The call before this one was heard after all.
                    return b""
                raise
            except (ServerUnreachable, StoreUnavailable, TooOften) as error:
                if pause is None or not question.may_repeat(error):
                    raise
                doubt = doubt or not is_unheard(error)
                await asyncio.sleep(pause_after(error, pause))
        raise AssertionError  # pragma: no cover - the last try gives or raises

    async def _answer(self, request: httpx.Request, question: Question) -> bytes:
        answer = await self._send(request)
        if answer.is_success:
            return answer.content
        raise _refusal(answer, question.queue, question.id)

    async def _send(self, request: httpx.Request, *, stream: bool = False) -> httpx.Response:
        try:
            return await self._http.send(request, stream=stream)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise ServerUnreachable(f"No server answers at {self.address}.") from error

    def _stream(
        self,
        path: str,
        queue: str = "",
        id: str = "",
        *,
        query: Mapping[str, str | Sequence[str]] | None = None,
    ) -> Connect:
        """Give what opens a stream of events after an event that was had."""

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

        return connect


async def _must_be_stream(answer: httpx.Response, queue: str, id: str) -> None:
    """Let a stream pass, or the word that there is no more; raise what anything else says."""
    if answer.status_code == httpx.codes.NO_CONTENT:
        return
    if answer.is_success and answer.headers.get("content-type", "").startswith(EVENT_STREAM):
        return
    await answer.aread()
    raise _refusal(answer, queue, id)


def _refusal(answer: httpx.Response, queue: str, id: str) -> MaitredError:
    try:
        return error_of(answer.json(), queue=queue, id=id)
    except (ValueError, AttributeError, LookupError):
        return ServerUnreachable(
            f"What answers at {answer.request.url.host} is no Maitred server: it says {answer.status_code}."
        )
