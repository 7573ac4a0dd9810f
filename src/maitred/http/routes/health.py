"""Health: whether this process lives, and whether it can serve; and what it counts, for Prometheus."""

import asyncio

from fastapi import APIRouter, Request
from starlette.responses import Response

from maitred.errors import StoreError
from maitred.http.answer import answer, problem, problem_answer
from maitred.http.describe import answers
from maitred.http.incoming import TheDesk
from maitred.http.route import Route
from maitred.service.health import trouble
from maitred.service.metrics import MEDIA_TYPE

router = APIRouter(tags=["health"], default_response_class=Response, route_class=Route)

_LIVES = {"type": "object", "properties": {"status": {"type": "string"}}, "required": ["status"]}
_READY = {
    "type": "object",
    "properties": {"status": {"type": "string"}, "workers": {"type": "array", "items": {"type": "object"}}},
    "required": ["status", "workers"],
}


@router.get("/healthz", summary="The process lives", responses=answers({200: _LIVES}))
async def healthz() -> Response:
    """Answer at all."""
    return answer({"status": "ok"})


@router.get("/readyz", summary="The store answers, and workers take", responses=answers({200: _READY}))
async def readyz(request: Request, desk: TheDesk) -> Response:
    """Answer 200 if the store does, and each worker in this process takes jobs; else 503, with the reason.

    A worker takes jobs if it took one or waited for one within the last ten seconds.
    """
    workers = request.app.state.workers()
    shown = [each.document() for each in workers]
    try:
        await desk.stores.ping()
        why = trouble(workers)
    except StoreError as error:
        why = str(error)
    if why:
        return problem_answer(problem(503, "not-ready", "Not ready", why) | {"workers": shown})
    return answer({"status": "ready", "workers": shown})


_METRICS = {
    "description": "The text format of Prometheus.",
    "content": {"text/plain": {"schema": {"type": "string"}}},
}


@router.get("/metrics", summary="What this process counts", responses={**answers({}), 200: _METRICS})
async def metrics(request: Request) -> Response:
    """Answer with all metrics, also while the store is away; then `maitred_store_up` is 0."""
    state = request.app.state
    await state.gauges.look()
    # Writing them down takes a few milliseconds, in which others are to be answered.
    return Response(await asyncio.to_thread(state.metrics.exposition), headers={"content-type": MEDIA_TYPE})
