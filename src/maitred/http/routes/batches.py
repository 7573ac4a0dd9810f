"""Batches over HTTP: submit, add, seal, look at, watch, report, hold, retry and delete."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from starlette.responses import Response

from maitred.http.answer import answer
from maitred.http.auditing import made, made_many
from maitred.http.describe import EXAMPLE_BATCH, EXAMPLE_BODY, answers, ref, stream, takes
from maitred.http.incoming import (
    Cursor,
    Limit,
    Name,
    TheCaller,
    TheDesk,
    json_body,
    optional_body,
)
from maitred.http.route import Route
from maitred.http.routes.holds import WHY, reason_in
from maitred.http.routes.jobs import MANY, MANY_BYTES, MANY_JOBS, answer_many, many_bodies
from maitred.http.sse import EventStream
from maitred.wire import (
    BATCH_EVENTS,
    BatchBody,
    BatchDocument,
    HoldBody,
    JobBody,
    Page,
    ReportDocument,
    RetriedDocument,
    RetryBody,
    parse_request,
)

router = APIRouter(
    prefix="/api/v1/queues/{queue}/batches",
    tags=["batches"],
    default_response_class=Response,
    route_class=Route,
)


@router.post(
    "",
    summary="Submit a batch",
    status_code=201,
    responses=answers({201: BatchDocument, 200: BatchDocument}, 400, 404, 409, 413, 422),
    openapi_extra=takes(ref(BatchBody), example=EXAMPLE_BATCH),
)
async def create(request: Request, queue: Name, desk: TheDesk, caller: TheCaller) -> Response:
    """Answer with the batch as it was stored, before it is expanded: 201, `outcome` is `created`.

    An `external_id` that this submitter has sent before gives that batch: 200, `known`. 409 if it is another
    submitter's.
    """
    await desk.settings(queue)
    document = await desk.batches.create(queue, await json_body(request, MANY_BYTES), caller)
    made(request, document["id"])
    return answer(document, 201 if document["outcome"] == "created" else 200)


@router.get("", summary="List batches", responses=answers({200: Page[BatchDocument]}, 404, 422))
async def batches(
    queue: Name,
    desk: TheDesk,
    caller: TheCaller,
    *,
    cursor: Cursor = None,
    limit: Limit = 50,
    state: Annotated[str | None, Query(description="Such as pending, processing, failed.")] = None,
    external_id: Annotated[str | None, Query(description="What the submitter calls it.")] = None,
) -> Response:
    """Answer with batches, newest first."""
    page = await desk.batches.page(queue, state or None, external_id or None, cursor, limit, caller=caller)
    return answer(page)


@router.get("/{bid}", summary="Show a batch", responses=answers({200: BatchDocument}, 404, 422))
async def batch(queue: Name, bid: Name, desk: TheDesk) -> Response:
    """Answer with its state, and how many of its jobs are where."""
    return answer(await desk.batches.read(queue, bid))


@router.delete(
    "/{bid}", summary="Delete a batch", status_code=204, responses=answers({204: None}, 404, 409, 422)
)
async def remove(queue: Name, bid: Name, desk: TheDesk, caller: TheCaller) -> Response:
    """Delete it with its jobs, all of which must have ended; 409 otherwise.

    403 for a submitter's key if it holds jobs of others.
    """
    await desk.batches.remove(queue, bid, caller)
    return Response(status_code=204)


@router.post(
    "/{bid}/jobs",
    summary="Add up to 1000 jobs to a batch",
    status_code=207,
    responses=answers({207: MANY}, 400, 404, 409, 413, 422),
    openapi_extra=takes(
        {"type": "array", "maxItems": MANY_JOBS, "items": ref(JobBody)}, example=[EXAMPLE_BODY]
    ),
)
async def add(request: Request, queue: Name, bid: Name, desk: TheDesk, caller: TheCaller) -> Response:
    """Answer with a document or a problem for each, in order; 409 if the batch is sealed.

    A key that the batch has is passed over, with the outcome `known`.
    """
    documents = await desk.batches.add(queue, bid, await many_bodies(request, queue, desk), caller)
    made_many(request, documents, bid)
    return answer_many(documents)


_CHANGED = answers({200: BatchDocument}, 400, 404, 409, 413, 422)


@router.post("/{bid}/seal", summary="Seal a batch", responses=_CHANGED, openapi_extra=WHY)
async def seal(request: Request, queue: Name, bid: Name, desk: TheDesk) -> Response:
    """Say that the last job is in; when all have ended, it is reported."""
    await reason_in(request)
    return answer(await desk.batches.seal(queue, bid))


@router.get(
    "/{bid}/report", summary="Show a batch's report", responses=answers({200: ReportDocument}, 404, 422)
)
async def report(queue: Name, bid: Name, desk: TheDesk) -> Response:
    """Answer with the last report; 404 `no-report` while there is none yet."""
    return answer(await desk.batches.report(queue, bid))


@router.post("/{bid}/hold", summary="Hold a batch", responses=_CHANGED, openapi_extra=WHY)
async def hold(request: Request, queue: Name, bid: Name, desk: TheDesk, caller: TheCaller) -> Response:
    """Hold it with its jobs, whenever a place of one comes up or a stage ends; 409 if it is past that."""
    return answer(await desk.batches.hold(queue, bid, by=caller.by, reason=await reason_in(request)))


@router.post("/{bid}/resume", summary="Let a held batch go on", responses=_CHANGED, openapi_extra=WHY)
async def resume(request: Request, queue: Name, bid: Name, desk: TheDesk) -> Response:
    """Let it go on, with the jobs that nothing else holds."""
    await reason_in(request)
    return answer(await desk.batches.resume(queue, bid))


@router.post(
    "/{bid}/retry",
    summary="Retry a batch's failed jobs",
    responses=answers({200: RetriedDocument}, 400, 404, 409, 413, 422),
    openapi_extra=takes(ref(RetryBody), required=False, example={"reason": "the disk is back"}),
)
async def retry(request: Request, queue: Name, bid: Name, desk: TheDesk) -> Response:
    """Let each go on at the stage that failed; answer with how many there were."""
    parse_request(RetryBody, await optional_body(request))
    return answer({"batch": bid, "retried": await desk.batches.retry(queue, bid)})


@router.post(
    "/{bid}/update-report",
    summary="Ask for an update report",
    responses=_CHANGED,
    openapi_extra=takes(ref(HoldBody), required=False, example={"reason": "two were retried"}),
)
async def update_report(request: Request, queue: Name, bid: Name, desk: TheDesk) -> Response:
    """Report, when unfinished jobs have ended, what changed since the last time; 409 unless it has failed."""
    await reason_in(request)
    return answer(await desk.batches.update_report(queue, bid))


@router.get(
    "/{bid}/events",
    summary="Watch a batch",
    responses={**answers({204: None}, 404, 422), 200: stream(BATCH_EVENTS)},
)
async def events(
    queue: Name,
    bid: Name,
    desk: TheDesk,
    caller: TheCaller,
    *,
    last_event_id: Annotated[
        str | None, Header(description="The id of the last event that was received, to go on after it.")
    ] = None,
) -> Response:
    """Answer with the present state and counts, then with each change, until the batch is reported.

    With `Last-Event-ID` the stream goes on after that event; if a report was missed that is not the last one,
    a `reset` comes first. 204 if that event was the last one.
    """
    watch = await desk.batches.watch(queue, bid, last_event_id or None)
    return (
        Response(status_code=204) if watch is None else EventStream(watch, partial(desk.door.still, caller))
    )
