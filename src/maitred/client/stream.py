"""Reading a stream of server-sent events: from bytes to messages, and to the types of the wire.

Lines are split here, at line feeds only: what a job printed may hold characters that other readers take for
the end of a line, such as U+2028.
"""

from collections.abc import AsyncIterable, AsyncIterator
from typing import NamedTuple

from maitred.wire import (
    BATCH_EVENTS,
    EVENTS,
    EVERYTHING,
    BatchEvent,
    EverythingEvent,
    Heard,
    WatchEvent,
    decode_json,
)

EVENT_STREAM = "text/event-stream"

__all__ = [
    "EVENT_STREAM",
    "Heard",
    "Message",
    "messages",
    "read_any_event",
    "read_batch_event",
    "read_job_event",
]


class Message(NamedTuple):
    """One event as it came: its name, its data, and its id if it has one."""

    event: str
    data: bytes
    id: str | None


async def messages(chunks: AsyncIterable[bytes]) -> AsyncIterator[Message]:
    """Give the messages of a stream; one that breaks off in the middle is left out."""
    event, data, id = "message", list[bytes](), None
    async for line in _lines(chunks):
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            if data:
                yield Message(event, b"\n".join(data), id)
            event, data, id = "message", [], None
        elif name == b"event":
            event = value.decode(errors="replace")
        elif name == b"data":
            data.append(value)
        elif name == b"id":
            id = value.decode(errors="replace")


def read_job_event(message: Message) -> WatchEvent | None:
    """Give what a message tells of a job; None for one that this client does not know."""
    kind = EVENTS.get(message.event)
    return kind.model_validate({**decode_json(message.data), "id": message.id}) if kind else None


def read_batch_event(message: Message) -> BatchEvent | None:
    """Give what a message tells of a batch; None for one that this client does not know."""
    kind = BATCH_EVENTS.get(message.event)
    return kind.model_validate({**decode_json(message.data), "id": message.id}) if kind else None


def read_any_event(message: Message) -> EverythingEvent | None:
    """Give what a message tells of any queue; None for one that this client does not know."""
    kind = EVERYTHING.get(message.event)
    return kind.model_validate({**decode_json(message.data), "event_id": message.id}) if kind else None


async def _lines(chunks: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    begun: list[bytes] = []
    async for chunk in chunks:
        first, *others = chunk.split(b"\n")
        begun.append(first)
        for part in others:
            yield b"".join(begun).removesuffix(b"\r")
            begun = [part]
