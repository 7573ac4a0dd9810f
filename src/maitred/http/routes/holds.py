"""Holds over HTTP: a job, a submitter or a profile is held, says by whom and why, and goes on."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from maitred.core.job import Submitter
from maitred.http.answer import answer
from maitred.http.describe import answers, ref, takes
from maitred.http.incoming import Name, SubmitterType, TheCaller, TheDesk, optional_body
from maitred.http.route import Route
from maitred.wire import HoldBody, JobDocument, ProfileDocument, SubmitterDocument, parse_request

router = APIRouter(
    prefix="/api/v1/queues/{queue}",
    tags=["holds"],
    default_response_class=Response,
    route_class=Route,
)

WHY = takes(ref(HoldBody), required=False, example={"reason": "the disk is full"})


async def reason_in(request: Request) -> str:
    """Read why, if that is said; 422 for anything else."""
    return parse_request(HoldBody, await optional_body(request)).reason


_JOB = answers({200: JobDocument}, 400, 404, 409, 413, 422)


@router.post("/jobs/{id}/hold", summary="Hold a job", responses=_JOB, openapi_extra=WHY)
async def hold_job(request: Request, queue: Name, id: Name, desk: TheDesk, caller: TheCaller) -> Response:
    """Take a waiting job out of line at once; a running one is held before its next stage."""
    return answer(await desk.holds.job(queue, id, by=caller.by, reason=await reason_in(request)))


@router.post("/jobs/{id}/resume", summary="Let a held job go on", responses=_JOB, openapi_extra=WHY)
async def resume_job(request: Request, queue: Name, id: Name, desk: TheDesk) -> Response:
    """Take the job's own hold away; it comes back to a place of its own if nothing else holds it."""
    await reason_in(request)
    return answer(await desk.holds.resume_job(queue, id))


_SUBMITTER = answers({200: SubmitterDocument}, 400, 404, 413, 422)


@router.post(
    "/submitters/{type}/{id}/hold", summary="Hold a submitter", responses=_SUBMITTER, openapi_extra=WHY
)
async def hold_submitter(
    request: Request, queue: Name, kind: SubmitterType, id: Name, *, desk: TheDesk, caller: TheCaller
) -> Response:
    """Hold what the submitter has, whenever a place of it comes up or a stage ends."""
    reason = await reason_in(request)
    return answer(await desk.holds.submitter(queue, Submitter(kind, id), by=caller.by, reason=reason))


@router.post(
    "/submitters/{type}/{id}/resume",
    summary="Let a held submitter go on",
    responses=_SUBMITTER,
    openapi_extra=WHY,
)
async def resume_submitter(
    request: Request, queue: Name, kind: SubmitterType, id: Name, desk: TheDesk
) -> Response:
    """Let the submitter's jobs go on that nothing else holds."""
    await reason_in(request)
    return answer(await desk.holds.resume_submitter(queue, Submitter(kind, id)))


_PROFILE = answers({200: ProfileDocument}, 400, 404, 413, 422)


@router.post("/profiles/{name}/hold", summary="Hold a profile", responses=_PROFILE, openapi_extra=WHY)
async def hold_profile(
    request: Request, queue: Name, name: Name, desk: TheDesk, caller: TheCaller
) -> Response:
    """Hold all jobs of a profile, whenever a place of one comes up or a stage ends."""
    return answer(await desk.holds.profile(queue, name, by=caller.by, reason=await reason_in(request)))


@router.post(
    "/profiles/{name}/resume", summary="Let a held profile go on", responses=_PROFILE, openapi_extra=WHY
)
async def resume_profile(request: Request, queue: Name, name: Name, desk: TheDesk) -> Response:
    """Let the profile's jobs go on that nothing else holds."""
    await reason_in(request)
    return answer(await desk.holds.resume_profile(queue, name))
