"""API keys over HTTP: who may call, and the secrets by which receivers know what is sent to them."""

from fastapi import APIRouter, Request
from starlette.responses import Response

from maitred.core.settings import SECOND
from maitred.http.answer import answer
from maitred.http.auditing import made
from maitred.http.describe import answers, ref, takes
from maitred.http.incoming import (
    SMALL_BODY,
    Cursor,
    Limit,
    Name,
    TheDesk,
    json_body,
    optional_body,
)
from maitred.http.route import Route
from maitred.wire import AuditEntry, KeyBody, KeyDocument, Page, RotateBody, parse_request

router = APIRouter(
    prefix="/api/v1",
    tags=["keys"],
    default_response_class=Response,
    route_class=Route,
)


@router.get("/keys", summary="List keys", responses=answers({200: Page[KeyDocument]}, 422))
async def keys(desk: TheDesk, cursor: Cursor = None, limit: Limit = 50) -> Response:
    """Answer with the keys and their callback secrets; `local` is whoever calls while there are no keys."""
    return answer(await desk.key_desk.page(cursor, limit))


@router.post(
    "/keys",
    summary="Make a key",
    status_code=201,
    responses=answers({201: KeyDocument}, 400, 413, 422),
    openapi_extra=takes(ref(KeyBody), example={"role": "submitter", "submitters": ["user:ada"]}),
)
async def create(request: Request, desk: TheDesk) -> Response:
    """Answer with the key itself, once, under `key`. From the first one on every call needs a key."""
    asked = parse_request(KeyBody, await json_body(request, SMALL_BODY))
    document = await desk.key_desk.create(asked)
    made(request, document["id"])
    return answer(document, 201)


@router.delete(
    "/keys/{id}", summary="Revoke a key", status_code=204, responses=answers({204: None}, 404, 409, 422)
)
async def revoke(id: Name, desk: TheDesk) -> Response:
    """Let a key be good no longer; its record stays, and what was asked for with it is still signed."""
    await desk.key_desk.revoke(id)
    return Response(status_code=204)


@router.post(
    "/keys/{id}/rotate",
    summary="Replace a key and its callback secret",
    responses=answers({200: KeyDocument}, 400, 404, 409, 413, 422),
    openapi_extra=takes(ref(RotateBody), required=False, example={"keep": 86400}),
)
async def rotate(request: Request, id: Name, desk: TheDesk) -> Response:
    """Answer with the new key, once, under `key`; the one before is no longer good.

    A new secret signs from now on; the one before signs too for `keep` seconds, a day if not said. With
    `"new_key": false`, and for `local`, which has no key, only the secret is replaced.
    """
    asked = parse_request(RotateBody, await optional_body(request))
    return answer(await desk.key_desk.rotate(id, round(asked.keep * SECOND), new_key=asked.new_key))


@router.get("/audit", summary="Show who changed what", responses=answers({200: Page[AuditEntry]}, 422))
async def audit(desk: TheDesk, cursor: Cursor = None, limit: Limit = 50) -> Response:
    """Answer with the last changes, newest first, and with what was forbidden."""
    return answer(await desk.audit.page(cursor, limit))
