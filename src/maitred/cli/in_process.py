"""Calls to an app in the same process: its answers come piece by piece, as they would over a wire."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import httpx
from starlette.types import ASGIApp, Message


class InProcess(httpx.AsyncBaseTransport):
    """What carries the requests of a client to an app."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Call the app; give its answer as soon as it begins."""
        call = _Call(self._app, request, await request.aread())
        try:
            return await call.begun()
        except BaseException:
            await call.aclose()
            raise


class _Call(httpx.AsyncByteStream):
    """One call; to close it is to hang up."""

    def __init__(self, app: ASGIApp, request: httpx.Request, body: bytes) -> None:
        self._request, self._body = request, [body]
        self._head: asyncio.Future[httpx.Response] = asyncio.get_running_loop().create_future()
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._answering = asyncio.create_task(self._answer(app))

    async def begun(self) -> httpx.Response:
        """Wait for the head of the answer; raise what the app raises before."""
        return await self._head

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (piece := await self._pieces.get()) is not None:
            yield piece
        await self._answering

    async def aclose(self) -> None:
        """Hang up."""
        self._answering.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._answering

    async def _answer(self, app: ASGIApp) -> None:
        try:
            await app(self._scope(), self._receive, self._send)
        except Exception as error:
            if self._head.done():
                raise
            self._head.set_exception(error)
        finally:
            self._pieces.put_nowait(None)

    def _scope(self) -> Message:
        url = self._request.url
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": self._request.method,
            "headers": [(name.lower(), value) for name, value in self._request.headers.raw],
            "scheme": url.scheme,
            "path": url.path,
            "raw_path": url.raw_path.partition(b"?")[0],
            "query_string": url.query,
            "server": (url.host, url.port),
            "client": None,
            "root_path": "",
        }

    async def _receive(self) -> Message:
        if self._body:
            return {"type": "http.request", "body": self._body.pop(), "more_body": False}
        # Whoever hangs up ends the call itself.
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            head = httpx.Response(message["status"], headers=message["headers"], stream=self)
            self._head.set_result(head)
        elif body := message.get("body"):
            self._pieces.put_nowait(body)
