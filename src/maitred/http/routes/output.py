"""What a job said and left behind, over HTTP."""

import re
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from maitred.http.answer import answer
from maitred.http.describe import answers
from maitred.http.incoming import Name, TheDesk, Version
from maitred.http.route import Route
from maitred.service.output import READ_AT_ONCE
from maitred.wire import OutputDocument

ANY_TYPE = "application/octet-stream"
_MEDIA_TYPE = re.compile(r"[\w.+-]{1,127}/[\w.+-]{1,127}(; ?[\w-]+=[\w.-]+)?", re.ASCII)
_PLAIN = "text/plain"

router = APIRouter(
    prefix="/api/v1/queues/{queue}/jobs/{id}",
    tags=["jobs"],
    default_response_class=Response,
    route_class=Route,
)

_OUTPUT = answers({200: OutputDocument}, 404, 422)
_OUTPUT[200]["content"][_PLAIN] = {"schema": {"type": "string"}}
_FILE = answers({200: None}, 404, 422)
_FILE[200]["content"] = {"*/*": {"schema": {"type": "string", "format": "binary"}}}


@router.get("/output", summary="Show what a job said", responses=_OUTPUT)
async def output(
    request: Request,
    queue: Name,
    id: Name,
    desk: TheDesk,
    *,
    version: Version = None,
    stream: Annotated[str | None, Query(description="One stream only, such as stdout.")] = None,
    begin: Annotated[
        int, Query(alias="from", ge=1, le=(1 << 53) - 1, description="The first number wanted.")
    ] = 1,
    limit: Annotated[
        int, Query(ge=1, le=READ_AT_ONCE, description="How many pieces at most.")
    ] = READ_AT_ONCE,
) -> Response:
    """Answer with pieces in order; with `Accept: text/plain`, with all of it as text, without `limit`.

    In the text a line `[N bytes cut]` stands where something was left out.
    """
    one = stream or None
    if _wants_text(request):
        text = await desk.outputs.text(queue, id, version, stream=one, begin=begin)
        return Response(text, media_type=_PLAIN)
    return answer(await desk.outputs.output(queue, id, version, stream=one, begin=begin, limit=limit))


def _wants_text(request: Request) -> bool:
    accepted = [
        each.partition(";")[0].strip().lower() for each in request.headers.get("accept", "").split(",")
    ]
    return _PLAIN in accepted and "application/json" not in accepted


@router.get("/artifacts/{name}", summary="Get a file that a job made", responses=_FILE)
async def artifact(queue: Name, id: Name, name: Name, desk: TheDesk, version: Version = None) -> Response:
    """Answer with its bytes, to be saved and not shown."""
    found = await desk.outputs.artifact(queue, id, name, version)
    kind = found.media_type if _MEDIA_TYPE.fullmatch(found.media_type) else ANY_TYPE
    headers = {
        "Content-Type": kind,
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name.rpartition('/')[2], safe='')}",
    }
    return Response(found.data, headers=headers)
