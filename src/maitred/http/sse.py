"""Server-sent events: a watch as a stream of text that browsers and the client can take up again.

Each event is `id` (where it can be gone on from), `event` and one line of `data`. A comment every 15 seconds
keeps the connection open. The stream ends after the last event; a browser that asks again then is answered
204, by which it knows that there is no more.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from maitred.service.telling import Telling, Told

EVENT_STREAM = "text/event-stream"
HEARTBEAT = 15.0
# A reader that takes nothing for so many seconds is given up.
STALLED = 60.0
_HEARTBEAT = b": still here\n\n"
# How long a browser waits before it comes back, in milliseconds.
_RETRY = b"retry: 1000\n\n"


def event_text(told: Told) -> bytes:
    """Write one event."""
    id = b"" if told.id is None else b"id: %b\n" % told.id.encode()
    return b"%bevent: %b\ndata: %b\n\n" % (id, told.event.encode(), told.body)


class EventStream(StreamingResponse):
    """Answers with the events of a watch, and leaves it when either side has enough.

    It ends before the next event when the reader may not `stay`, since its key is no longer good.
    """

    def __init__(self, watch: Telling, stay: Callable[[], Awaitable[bool]]) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(_texts(watch, stay), headers=headers, media_type=EVENT_STREAM)
        self._watch = watch

    async def stream_response(self, send: Send) -> None:
        """Send events for as long as the reader takes them."""
        with contextlib.suppress(TimeoutError):
            await super().stream_response(partial(_send_soon, send))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until all is told or the reader has gone."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._watch.leave()


async def _send_soon(send: Send, message: Message) -> None:
    async with asyncio.timeout(STALLED):
        await send(message)


async def _texts(watch: Telling, stay: Callable[[], Awaitable[bool]]) -> AsyncIterator[bytes]:
    yield _RETRY
    while not watch.ended:
        told = await watch.next(HEARTBEAT)
        if not await stay():
            return
        if told is not None:
            yield event_text(told)
        elif not watch.closed:
            yield _HEARTBEAT
