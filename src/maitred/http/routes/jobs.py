"""Jobs over HTTP: submit, look at, move, shorten, cancel, retry, delete."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from maitred.errors import Fault, InvalidJob, MaitredError
from maitred.http.answer import answer, problem_of
from maitred.http.auditing import made, made_many
from maitred.http.describe import EXAMPLE_BODY, answers, ref, takes
from maitred.http.incoming import (
    PREFIXES,
    SMALL_BODY,
    Cursor,
    Limit,
    Name,
    TheCaller,
    TheDesk,
    Version,
    json_body,
    optional_body,
)
from maitred.http.route import Route
from maitred.service.desk import Desk
from maitred.service.document import Document
from maitred.service.listing import Filter
from maitred.service.order import read_submitter
from maitred.wire import (
    CancelBody,
    DeliveryDocument,
    DurationBody,
    JobBody,
    JobDocument,
    MoveBody,
    OthersJob,
    Page,
    PriorityBody,
    Problem,
    RetryBody,
    parse_request,
)

MANY_JOBS = 1000
MANY_BYTES = 64 << 20
_METADATA = "metadata."

MANY = {
    "type": "object",
    "required": ["items"],
    "properties": {"items": {"type": "array", "items": {"anyOf": [ref(JobDocument), ref(Problem)]}}},
}

JOB_OR_OTHERS = {"anyOf": [ref(JobDocument), ref(OthersJob)]}

router = APIRouter(
    prefix="/api/v1/queues/{queue}/jobs",
    tags=["jobs"],
    default_response_class=Response,
    route_class=Route,
)


@router.put(
    "",
    summary="Create or update a job",
    status_code=201,
    responses=answers({201: JobDocument, 200: JobDocument}, 400, 404, 409, 413, 422, 429),
    openapi_extra=takes(ref(JobBody), example=EXAMPLE_BODY),
)
async def put(request: Request, queue: Name, desk: TheDesk, caller: TheCaller) -> Response:
    """Answer with the document and its `outcome`.

    It is 201 for `created` (also of a key that has ended), 200 for `updated`, `upgraded` and `next-version`.
    """
    settings = await desk.settings(queue)
    document = await desk.put(queue, await json_body(request, settings.max_body), caller)
    made(request, document["id"])
    return answer(document, 201 if document["outcome"] == "created" else 200)


@router.post(
    "/many",
    summary="Create or update up to 1000 jobs",
    status_code=207,
    responses=answers({207: MANY}, 400, 404, 413, 422),
    openapi_extra=takes(
        {"type": "array", "maxItems": MANY_JOBS, "items": ref(JobBody)}, example=[EXAMPLE_BODY]
    ),
)
async def put_many(request: Request, queue: Name, desk: TheDesk, caller: TheCaller) -> Response:
    """Answer with a document or a problem for each, in order."""
    documents = await desk.put_many(queue, await many_bodies(request, queue, desk), caller)
    made_many(request, documents)
    return answer_many(documents)


async def many_bodies(request: Request, queue: str, desk: Desk) -> list[object]:
    """Read a list of bodies; 422 for anything else, or too many."""
    settings = await desk.settings(queue)
    bodies = await json_body(request, max(settings.max_body, MANY_BYTES))
    if not isinstance(bodies, list) or len(bodies) > MANY_JOBS:
        raise InvalidJob([Fault("", f"must be a list of at most {MANY_JOBS} jobs")])
    return bodies


def answer_many(items: Sequence[Document | MaitredError]) -> Response:
    """Answer with a document or a problem for each."""
    shown = [problem_of(item) if isinstance(item, MaitredError) else item for item in items]
    return answer({"items": shown}, 207)


@router.get(
    "",
    summary="List jobs",
    responses=answers({200: Page[JobDocument | OthersJob]}, 404, 422),
    description="First what runs, then what waits in line order, then what is held, then what has ended, "
    "last first; those of a batch in the order in which they came in. "
    "`metadata.K=V` as a parameter asks for jobs with that metadata.",
    openapi_extra={PREFIXES: [_METADATA]},
)
async def jobs(
    request: Request,
    queue: Name,
    desk: TheDesk,
    caller: TheCaller,
    *,
    cursor: Cursor = None,
    limit: Limit = 50,
    state: Annotated[str | None, Query(description="Such as pending, processing, completed.")] = None,
    key: Annotated[str | None, Query()] = None,
    submitter: Annotated[str | None, Query(examples=["user:7"])] = None,
    batch: Annotated[str | None, Query(examples=["bid0000000001"])] = None,
) -> Response:
    """Answer with one page of the list."""
    who = read_submitter(submitter) if submitter else None
    if who is not None:
        caller.must_own(who)
    metadata = _metadata(request.query_params)
    # What others' jobs are called is not told, and so they cannot be asked for by it either.
    owns = caller.owns if caller.limited and (key or batch or metadata) else None
    wanted = Filter(
        state=state or None,
        key=key or None,
        submitter=who,
        batch=batch or None,
        metadata=metadata,
        owns=owns,
    )
    return answer(caller.seen_page(await desk.jobs(queue, wanted, cursor, limit)))


def _metadata(query: Mapping[str, str]) -> dict[str, str]:
    return {name.removeprefix(_METADATA): query[name] for name in query if name.startswith(_METADATA)}


@router.get("/{id}", summary="Show a job", responses=answers({200: JOB_OR_OTHERS}, 404, 422))
async def job(queue: Name, id: Name, desk: TheDesk, caller: TheCaller, version: Version = None) -> Response:
    """Answer with the document; a submitter's key sees only where it is if the job is another's."""
    return answer(caller.seen(await desk.read(queue, id, version)))


@router.get(
    "/{id}/deliveries",
    summary="Show the tries at a job's callbacks",
    responses=answers({200: Page[DeliveryDocument]}, 404, 422),
)
async def deliveries(
    queue: Name,
    id: Name,
    desk: TheDesk,
    *,
    version: Version = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response:
    """Answer with the last tries to tell `response_url` of it, oldest first, and what was answered."""
    return answer(await desk.deliveries(queue, id, version, cursor, limit))


@router.delete(
    "/{id}", summary="Delete a job", status_code=204, responses=answers({204: None}, 404, 409, 422)
)
async def remove(queue: Name, id: Name, desk: TheDesk) -> Response:
    """Delete it in any state, with all its versions; afterwards its key is unknown.

    409 only while the report of its batch is made.
    """
    await desk.remove(queue, id)
    return Response(status_code=204)


_MOVES = answers({200: JobDocument}, 400, 404, 409, 413, 422)


@router.post(
    "/{id}/release",
    summary="Move a job to the front",
    responses=_MOVES,
    openapi_extra=takes(ref(MoveBody), required=False, example={}),
)
async def release(request: Request, queue: Name, id: Name, desk: TheDesk) -> Response:
    """Move a scheduled or bulk job to the front; of several, the last one moved goes first."""
    move = parse_request(MoveBody, await optional_body(request))
    return answer(await desk.release(queue, id, move.nonce))


@router.post(
    "/{id}/delay",
    summary="Move a job to the end",
    responses=_MOVES,
    openapi_extra=takes(ref(MoveBody), required=False, example={}),
)
async def delay(request: Request, queue: Name, id: Name, desk: TheDesk) -> Response:
    """Move a scheduled or bulk job behind all others of its band and priority."""
    move = parse_request(MoveBody, await optional_body(request))
    return answer(await desk.delay(queue, id, move.nonce))


@router.post(
    "/{id}/duration",
    summary="Shorten a job",
    responses=_MOVES,
    openapi_extra=takes(ref(DurationBody), example={"seconds": 3}),
)
async def duration(request: Request, queue: Name, id: Name, desk: TheDesk) -> Response:
    """Let a waiting or running job take only so many seconds, counted from its start.

    It keeps its place and takes the smallest class that holds them. If it has run longer already, it stops.
    409 for a longer duration, and for a job that has ended.
    """
    asked = parse_request(DurationBody, await json_body(request, SMALL_BODY))
    return answer(await desk.shorten(queue, id, asked.seconds))


@router.post(
    "/{id}/priority",
    summary="Give a job another priority",
    responses=_MOVES,
    openapi_extra=takes(ref(PriorityBody), example={"priority": 2}),
)
async def priority(request: Request, queue: Name, id: Name, desk: TheDesk) -> Response:
    """Move a waiting job among the others by its priority, lower first; its release and arrival stay."""
    asked = parse_request(PriorityBody, await json_body(request, SMALL_BODY))
    return answer(await desk.prioritise(queue, id, asked.priority))


@router.post(
    "/{id}/retry",
    summary="Retry a failed job",
    responses=_MOVES,
    openapi_extra=takes(ref(RetryBody), required=False, example={"reason": "the disk is back"}),
)
async def retry(request: Request, queue: Name, id: Name, desk: TheDesk) -> Response:
    """Let a failed job go on at the stage that failed; what was done before is not done again."""
    parse_request(RetryBody, await optional_body(request))
    return answer(await desk.retry(queue, id))


@router.post(
    "/{id}/cancel",
    summary="Cancel a job",
    responses=_MOVES,
    openapi_extra=takes(ref(CancelBody), required=False, example={"reason": "sent by mistake"}),
)
async def cancel(request: Request, queue: Name, id: Name, desk: TheDesk, caller: TheCaller) -> Response:
    """End a job that has not ended: it is `failed` with code `cancelled`, and says who did it and why."""
    why = parse_request(CancelBody, await optional_body(request))
    return answer(await desk.cancel(queue, id, by=caller.by, reason=why.reason))
