"""Watching over HTTP: one job, its state, its place in line and its result as they change; or everything."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from maitred.http.describe import answers, stream
from maitred.http.incoming import Name, TheCaller, TheDesk, Version
from maitred.http.route import Route
from maitred.http.sse import EventStream
from maitred.wire import EVENTS, EVERYTHING, EventName

router = APIRouter(
    prefix="/api/v1/queues/{queue}/jobs",
    tags=["jobs"],
    default_response_class=Response,
    route_class=Route,
)

everything = APIRouter(
    prefix="/api/v1/events", tags=["queues"], default_response_class=Response, route_class=Route
)

LastEventId = Annotated[
    str | None, Header(description="The id of the last event that was received, to go on after it.")
]


@router.get(
    "/{id}/events",
    summary="Watch a job",
    responses={**answers({204: None}, 404, 422), 200: stream(EVENTS)},
)
async def events(
    queue: Name,
    id: Name,
    desk: TheDesk,
    caller: TheCaller,
    *,
    version: Version = None,
    last_event_id: LastEventId = None,
) -> Response:
    """Answer with the present state and place, and then with each change until the job has ended.

    `state` comes when the state changes, `place` while the job waits and its position, reason or estimate
    moves, `output` and `progress` while it runs, `result` once at the end. With `Last-Event-ID` the stream
    goes on after that event; if that is too long ago a `reset` comes first, and then the present. 204 if that
    event was the last one.
    """
    watch = await desk.watch(queue, id, version, last_event_id or None)
    return (
        Response(status_code=204) if watch is None else EventStream(watch, partial(desk.door.still, caller))
    )


@everything.get("", summary="Watch everything", responses={**answers({}, 404, 422), 200: stream(EVERYTHING)})
async def all_events(
    desk: TheDesk,
    caller: TheCaller,
    *,
    queue: Annotated[list[str] | None, Query(description="Only of these queues; else of all.")] = None,
    event: Annotated[list[EventName] | None, Query(description="Only these events; else all.")] = None,
    last_event_id: LastEventId = None,
) -> Response:
    """Answer with how each queue is that the key may see, and then with all that happens there.

    `queue` comes at first and when pause, holds, settings or workers change; `state` when a job is submitted,
    changes or ends, `output` and `progress` while it runs, `result` at its end; `batch` when one changes.
    With `Last-Event-ID` the stream goes on after that event, at this server or another; `reset` comes for a
    queue where that is too long ago, and then how it is now. The stream has no end.
    """
    watch = await desk.watch_everything(
        caller, last_event_id or None, queues=queue or (), events=[*event, "reset"] if event else ()
    )
    return EventStream(watch, partial(desk.door.still, caller))
