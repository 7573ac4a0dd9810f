"""Events as they come over the wire: lines of text, gathered to typed events."""

from collections.abc import AsyncIterable, AsyncIterator

from maitred.wire import EVENTS, WatchEvent, decode_json


async def read_events(lines: AsyncIterable[str]) -> AsyncIterator[WatchEvent]:
    """Read a stream of server-sent events; kinds that this client does not know are left out."""
    fields: dict[str, str] = {}
    async for line in lines:
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
            continue
        kind = EVENTS.get(fields.get("event", ""))
        if kind is not None:
            data = decode_json(fields.get("data", "{}").encode())
            yield kind.model_validate({**data, "id": fields.get("id"), "event": fields["event"]})
        fields = {}


def is_last(event: WatchEvent) -> bool:
    """Tell whether nothing comes after this event."""
    return event.event == "result" or (event.event == "state" and event.state == "deleted")
