"""Where the callbacks of a rehearsal go: to the app under test, or nowhere. All are kept to be seen."""

from typing import Any, NamedTuple

import httpx

from maitred.wire.codec import decode_json


class Callback(NamedTuple):
    """A message as it was sent to a response address, with the headers that sign it."""

    url: str
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        """What it says: its `type`, `timestamp` and `data`."""
        said: dict[str, Any] = decode_json(self.body)
        return said


class Mailbox(httpx.AsyncBaseTransport):
    """Keeps what is sent, and passes it on to a `receiver`; without one it has arrived."""

    def __init__(self, receiver: httpx.AsyncBaseTransport | None = None) -> None:
        self.callbacks: list[Callback] = []
        self._receiver = receiver

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Take one message."""
        body = await request.aread()
        self.callbacks.append(Callback(str(request.url), dict(request.headers), body))
        if self._receiver is None:
            return httpx.Response(204)
        return await self._receiver.handle_async_request(request)
