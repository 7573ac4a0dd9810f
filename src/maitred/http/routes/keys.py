"""API keys over HTTP: who may call, and the secrets by which receivers know what is sent to them."""

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from maitred.core.settings import SECOND
from maitred.http.answer import answer
from maitred.http.describe import answers, ref, takes
from maitred.http.incoming import Cursor, Limit, Name, TheDesk, only_known, optional_body
from maitred.wire import KeyDocument, Page, RotateBody, parse_request

router = APIRouter(
    prefix="/api/v1/keys",
    tags=["keys"],
    default_response_class=Response,
    dependencies=[Depends(only_known)],
)


@router.get("", summary="List keys", responses=answers({200: Page[KeyDocument]}, 422))
async def keys(desk: TheDesk, cursor: Cursor = None, limit: Limit = 50) -> Response:
    """Answer with the keys and their callback secrets; `local` is whoever calls on loopback without a key."""
    return answer(await desk.key_list(cursor, limit))


@router.post(
    "/{id}/rotate",
    summary="Give a key a new callback secret",
    responses=answers({200: KeyDocument}, 400, 404, 413, 422),
    openapi_extra=takes(ref(RotateBody), required=False, example={"keep": 86400}),
)
async def rotate(request: Request, id: Name, desk: TheDesk) -> Response:
    """Sign with a new secret from now on; the one before signs too for `keep` seconds, a day if not said."""
    asked = parse_request(RotateBody, await optional_body(request))
    return answer(await desk.rotate(id, round(asked.keep * SECOND)))
