"""Watching a job over HTTP: its state, its place in line and its result as they change."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header
from starlette.responses import Response

from maitred.http.describe import answers, stream
from maitred.http.incoming import Name, TheCaller, TheDesk, Version
from maitred.http.route import Route
from maitred.http.sse import EventStream
from maitred.wire import OutputEvent, PlaceEvent, ProgressEvent, ResultEvent, StateEvent

router = APIRouter(
    prefix="/api/v1/queues/{queue}/jobs",
    tags=["jobs"],
    default_response_class=Response,
    route_class=Route,
)

_STREAM = stream(
    "As `text/event-stream`: `state`, `place`, `output`, `progress`, `result` and `reset`.",
    state=StateEvent,
    place=PlaceEvent,
    output=OutputEvent,
    progress=ProgressEvent,
    result=ResultEvent,
)


@router.get(
    "/{id}/events",
    summary="Watch a job",
    responses={**answers({204: None}, 404, 422), 200: _STREAM},
)
async def events(
    queue: Name,
    id: Name,
    desk: TheDesk,
    caller: TheCaller,
    *,
    version: Version = None,
    last_event_id: Annotated[
        str | None, Header(description="The id of the last event that was received, to go on after it.")
    ] = None,
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
