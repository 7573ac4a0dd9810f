"""Queues over HTTP: their state, their line, who runs, who waits, and pause and resume."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from maitred.core.job import Submitter
from maitred.http.answer import answer
from maitred.http.describe import answers, ref, takes
from maitred.http.incoming import (
    Cursor,
    Limit,
    Name,
    SubmitterType,
    TheCaller,
    TheDesk,
    optional_body,
)
from maitred.http.route import Route
from maitred.wire import (
    CheckBody,
    CheckDocument,
    JobDocument,
    OthersJob,
    Page,
    PauseBody,
    QueueDocument,
    ReconcileBody,
    ReconcileDocument,
    RunningJob,
    SubmitterDocument,
    WorkerDocument,
    parse_request,
)

router = APIRouter(
    prefix="/api/v1/queues",
    tags=["queues"],
    default_response_class=Response,
    route_class=Route,
)


@router.get("", summary="List queues", responses=answers({200: Page[QueueDocument]}, 422))
async def queues(desk: TheDesk, caller: TheCaller, cursor: Cursor = None, limit: Limit = 50) -> Response:
    """Answer with the queues by name."""
    return answer(await desk.queues(cursor, limit, caller))


@router.get("/{queue}", summary="Show a queue", responses=answers({200: QueueDocument}, 404, 422))
async def queue(queue: Name, desk: TheDesk, caller: TheCaller) -> Response:
    """Answer with the settings, the counts, and whether it is paused."""
    return answer(caller.seen_queue(await desk.queue(queue)))


_SWITCHED = answers({200: QueueDocument}, 400, 404, 413, 422)


@router.post(
    "/{queue}/pause",
    summary="Pause a queue",
    responses=_SWITCHED,
    openapi_extra=takes(ref(PauseBody), required=False, example={"reason": "the disk is full"}),
)
async def pause(request: Request, queue: Name, desk: TheDesk, caller: TheCaller) -> Response:
    """Start nothing more; jobs are still accepted, and those that run go on."""
    why = parse_request(PauseBody, await optional_body(request))
    return answer(await desk.pause(queue, by=caller.by, reason=why.reason))


@router.post(
    "/{queue}/resume",
    summary="Resume a queue",
    responses=_SWITCHED,
    openapi_extra=takes(ref(PauseBody), required=False, example={"reason": "the disk is full"}),
)
async def resume(request: Request, queue: Name, desk: TheDesk) -> Response:
    """Start jobs again."""
    parse_request(PauseBody, await optional_body(request))
    return answer(await desk.resume(queue))


@router.post(
    "/{queue}/check",
    summary="Check a queue",
    responses=answers({200: CheckDocument}, 400, 404, 413, 422),
    openapi_extra=takes(ref(CheckBody), required=False, example={"repair": False}),
)
async def check(request: Request, queue: Name, desk: TheDesk) -> Response:
    """Look for broken rules in the store, and repair what can be repaired if `repair` is true."""
    asked = parse_request(CheckBody, await optional_body(request))
    return answer(await desk.check(queue, repair=asked.repair))


@router.post(
    "/{queue}/reconcile",
    summary="Reconcile a queue with its ledger",
    responses=answers({200: ReconcileDocument}, 400, 404, 413, 422),
    openapi_extra=takes(ref(ReconcileBody), required=False, example={}),
)
async def reconcile(request: Request, queue: Name, desk: TheDesk) -> Response:
    """Rebuild the line from the ledger, and tell what was done; nothing, where both are in one store."""
    parse_request(ReconcileBody, await optional_body(request))
    return answer(await desk.reconcile(queue))


@router.get(
    "/{queue}/line",
    summary="Show the line",
    responses=answers({200: Page[JobDocument | OthersJob]}, 404, 422),
)
async def line(
    queue: Name, desk: TheDesk, caller: TheCaller, cursor: Cursor = None, limit: Limit = 50
) -> Response:
    """Answer with the waiting jobs in line order."""
    return answer(caller.seen_page(await desk.line(queue, cursor, limit)))


@router.get(
    "/{queue}/running",
    summary="Show what runs",
    responses=answers({200: Page[RunningJob | OthersJob]}, 404, 422),
)
async def running(
    queue: Name, desk: TheDesk, caller: TheCaller, cursor: Cursor = None, limit: Limit = 50
) -> Response:
    """Answer with the running jobs in the order of their starts."""
    return answer(await desk.running(queue, cursor, limit, caller))


@router.get(
    "/{queue}/workers",
    summary="Show the workers",
    responses=answers({200: Page[WorkerDocument]}, 404, 422),
)
async def workers(queue: Name, desk: TheDesk, cursor: Cursor = None, limit: Limit = 50) -> Response:
    """Answer with the workers of the queue."""
    return answer(await desk.workers(queue, cursor, limit))


@router.get(
    "/{queue}/submitters/{type}/{id}",
    summary="Show a submitter's line",
    responses=answers({200: SubmitterDocument}, 404, 422),
)
async def submitter(queue: Name, kind: SubmitterType, id: Name, desk: TheDesk) -> Response:
    """Answer with the submitter's jobs and places, and the delay that its next job would get."""
    return answer(await desk.submitter(queue, Submitter(kind, id)))
