"""Watching a job, a batch or everything: a stream of events that is taken up again where it broke off.

The first connection must come about. After that one that breaks is made anew with the id of the last event,
a bounded number of times in a row; what counts as a success is news, or a connection that held for a while.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import TypeVar

import httpx

from maitred.client.stream import Heard, Message, messages
from maitred.errors import MaitredError, ServerUnreachable, StoreUnavailable

Event = TypeVar("Event", bound=Heard)

# How long to wait before each new try, in seconds; there is one for each.
PAUSES = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
# A connection that held for so many seconds was a good one.
HELD = 5.0
# The server says something every 15 seconds.
SILENCE = 45.0
BROKEN_OFF = "The server broke off before the end."

# Opens the stream after the event with an id; the answer is a success.
Connect = Callable[[str | None], AbstractAsyncContextManager[httpx.Response]]


# Reads a message; None for one that this client does not know.
Read = Callable[[Message], Event | None]


async def watch(
    connect: Connect, last: str | None, pauses: Sequence[float], read: Read[Event]
) -> AsyncGenerator[Event, None]:
    """Give the events after `last` until what is watched has ended or is gone."""
    known, broken = False, 0
    while True:
        connected = time.monotonic()
        try:
            async with connect(last) as answer:
                known = True
                if answer.status_code == httpx.codes.NO_CONTENT:
                    return
                async with aclosing(_events(answer, read)) as events:
                    async for id, event in events:
                        if id is not None:
                            last, broken = id, 0
                        yield event
                        if event.is_last:
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


async def _events(
    answer: httpx.Response, read: Read[Event]
) -> AsyncGenerator[tuple[str | None, Event], None]:
    async for message in messages(answer.aiter_bytes()):
        if event := read(message):
            yield message.id, event
