"""Health: whether this process lives, and whether it can serve."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from maitred.errors import StoreError
from maitred.http.answer import answer, problem, problem_answer
from maitred.http.describe import answers
from maitred.http.incoming import TheDesk

router = APIRouter(tags=["health"], default_response_class=Response)

_LIVES = {"type": "object", "properties": {"status": {"type": "string"}}, "required": ["status"]}


@router.get("/healthz", summary="The process lives", responses=answers({200: _LIVES}))
async def healthz() -> Response:
    """Answer at all."""
    return answer({"status": "ok"})


@router.get("/readyz", summary="The store answers, and workers take", responses=answers({200: _LIVES}))
async def readyz(request: Request, desk: TheDesk) -> Response:
    """Answer 200 if the store does, and the worker in this process, if there is one, takes jobs; else 503."""
    taking = request.app.state.taking
    try:
        await desk.stores.ping()
        takes = taking is None or await taking()
    except StoreError as error:
        return problem_answer(problem(503, "not-ready", "Not ready", str(error)))
    if not takes:
        return problem_answer(problem(503, "not-ready", "Not ready", "the worker does not take jobs"))
    return answer({"status": "ready"})
