"""What `maitred events` tells: all that happens in all queues, a line for each event."""

from collections.abc import Sequence
from contextlib import aclosing
from typing import get_args

from maitred.cli.batch_printing import counts_sentence
from maitred.cli.printing import print_json, queue_sentence, say
from maitred.client import Client
from maitred.errors import ConfigError
from maitred.wire import EventName, EverythingEvent
from maitred.wire.everything import (
    BatchNewsEvent,
    JobOutputEvent,
    JobProgressEvent,
    JobResultEvent,
    JobStateEvent,
    QueueEvent,
)


async def tell_events(
    client: Client, queues: Sequence[str], names: Sequence[EventName], last: str | None, *, as_json: bool
) -> None:
    """Print each event as it comes; this has no end."""
    async with aclosing(client.everything(queues=queues, names=names, last=last)) as events:
        async for event in events:
            if as_json:
                print_json(event)
            else:
                say(line(event))


def event_names(given: Sequence[str]) -> list[EventName]:
    """Read names of events; `ConfigError` says which there are."""
    known: tuple[EventName, ...] = get_args(EventName)
    if wrong := [name for name in given if name not in known]:
        raise ConfigError(f"--event takes {', '.join(known)}, not {wrong[0]!r}.")
    return [name for name in known if name in given]


def line(event: EverythingEvent) -> str:
    """Say an event."""
    return queue_sentence(event) if isinstance(event, QueueEvent) else f"{event.queue}: {_news(event)}"


def _news(event: EverythingEvent) -> str:
    match event:
        case JobStateEvent():
            name = f"{event.id} ({event.key})" if event.key else event.id
            more = "".join(f" ({word})" for word in (event.phase, event.code) if word)
            return f"{name} is {event.state}{more}"
        case JobOutputEvent():
            return f"{event.id} {event.stream}: {event.text.rstrip()}"
        case JobProgressEvent():
            return f"{event.id} is at {event.fraction:.0%} {event.message}".rstrip()
        case JobResultEvent():
            why = event.message or event.code
            return f"{event.id} has ended" + (f" ({why})" if why else "")
        case BatchNewsEvent():
            return f"{event.id} is {event.state}: {counts_sentence(event.counts, sealed=event.sealed)}"
        case _:
            return "what happened before cannot be told any more"
