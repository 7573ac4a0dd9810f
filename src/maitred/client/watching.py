"""Watching one job: a stream of events that is taken up again where it broke off.

The first connection must come about. After that one that breaks is made anew with the id of the last event,
a bounded number of times in a row; what counts as a success is news, or a connection that held for a while.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing

import httpx

from maitred.client.stream import messages, typed
from maitred.errors import MaitredError, ServerUnreachable, StoreUnavailable
from maitred.wire import ResultEvent, StateEvent, WatchEvent

# How long to wait before each new try, in seconds; there is one for each.
PAUSES = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
# A connection that held for so many seconds was a good one.
HELD = 5.0
# The server says something every 15 seconds.
SILENCE = 45.0
BROKEN_OFF = "The server broke off before the job had ended."

# Opens the stream after the event with an id; the answer is a success.
Connect = Callable[[str | None], AbstractAsyncContextManager[httpx.Response]]


async def watch(
    connect: Connect, last: str | None, pauses: Sequence[float]
) -> AsyncGenerator[WatchEvent, None]:
    """Give the events after `last` until the job has ended or is gone."""
    known, broken = False, 0
    while True:
        connected = time.monotonic()
        try:
            async with connect(last) as answer:
                known = True
                if answer.status_code == httpx.codes.NO_CONTENT:
                    return
                async with aclosing(_events(answer)) as events:
                    async for event in events:
                        if event.id is not None:
                            last, broken = event.id, 0
                        yield event
                        if is_last(event):
                            return
            lost: MaitredError = ServerUnreachable(BROKEN_OFF)
        except httpx.TransportError:
            lost = ServerUnreachable(BROKEN_OFF)
        except (ServerUnreachable, StoreUnavailable) as error:
            lost = error
        if time.monotonic() - connected > HELD:
            broken = 0
        if not known or broken == len(pauses):
            raise lost
        await asyncio.sleep(pauses[broken])
        broken += 1


def is_last(event: WatchEvent) -> bool:
    """Tell whether nothing comes after this event."""
    return isinstance(event, ResultEvent) or (isinstance(event, StateEvent) and event.state == "deleted")


async def _events(answer: httpx.Response) -> AsyncGenerator[WatchEvent, None]:
    async for message in messages(answer.aiter_bytes()):
        if event := typed(message):
            yield event
