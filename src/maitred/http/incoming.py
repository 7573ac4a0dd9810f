"""What comes in: bodies, read up to a limit as strict JSON, and paths whose ids may hold any character."""

from typing import Annotated, Any, Literal
from urllib.parse import unquote, unquote_to_bytes

from fastapi import Depends, HTTPException, Path, Query
from fastapi.routing import APIRoute
from pydantic import AfterValidator
from starlette.requests import HTTPConnection, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from maitred.errors import Fault, InvalidJob, TooLarge
from maitred.http.answer import problem, problem_answer
from maitred.service.caller import Caller
from maitred.service.desk import Desk
from maitred.wire import decode_json

SMALL_BODY = 64 << 10
PREFIXES = "x-parameter-prefixes"


async def json_body(request: Request, limit: int) -> Any:
    """Read a body of at most `limit` bytes as JSON; 400 if it is not JSON."""
    return _parse(await _read(request, limit))


async def optional_body(request: Request) -> Any:
    """Read a small body that may be missing; no body is an empty object."""
    body = await _read(request, SMALL_BODY)
    return _parse(body) if body else {}


async def _read(request: Request, limit: int) -> bytes:
    """Read the body; `TooLarge` as soon as it is known to have more than `limit` bytes."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise TooLarge(int(declared), limit)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise TooLarge(len(body), limit)
    return bytes(body)


def _parse(body: bytes) -> Any:
    if not body:
        raise HTTPException(400, "the body is empty; it has to be JSON")
    try:
        return decode_json(body)
    except ValueError as error:
        raise HTTPException(400, f"the body is not JSON: {error}") from error


def the_desk(connection: HTTPConnection) -> Desk:
    """Give the desk of the app that serves this request."""
    desk: Desk = connection.app.state.desk
    return desk


def the_caller(connection: HTTPConnection) -> Caller:
    """Give whoever calls; they were let in before."""
    caller: Caller = connection.state.caller
    return caller


def drop_empty(request: Request) -> None:
    """Leave out parameters without a value, before anybody reads them: whoever sends one asks for nothing.

    Metadata may be looked for that is empty.
    """
    query: bytes = request.scope["query_string"]
    if query:
        prefixes = tuple(prefix.encode() for prefix in _prefixes(request))
        sent = [part for part in query.split(b"&") if part.partition(b"=")[2] or part.startswith(prefixes)]
        request.scope["query_string"] = b"&".join(sent)


def only_known(request: Request) -> None:
    """Refuse parameters that the route does not have: a misspelt one would be ignored."""
    if not request.scope["query_string"]:
        return
    route: APIRoute = request.scope["route"]
    known = {parameter.alias for parameter in route.dependant.query_params}
    prefixes = _prefixes(request)
    unknown = [name for name in request.query_params if name not in known and not name.startswith(prefixes)]
    if unknown:
        raise InvalidJob([Fault(name, "is not a parameter that exists here") for name in unknown])


def _prefixes(request: Request) -> tuple[str, ...]:
    """Give with what parameters may begin: a route that takes any such name says so, under `PREFIXES`."""
    route: APIRoute = request.scope["route"]
    return tuple((route.openapi_extra or {}).get(PREFIXES, ()))


async def _desk(connection: HTTPConnection) -> Desk:
    # FastAPI would call a plain function in a thread.
    return the_desk(connection)


async def _caller(connection: HTTPConnection) -> Caller:
    return the_caller(connection)


class WholeSegments:
    """Keeps a path's segments whole: a `/` that was sent as `%2F` is part of an id and divides nothing.

    Frameworks decode the whole path first, and then cannot tell the two apart. Here each segment is decoded
    for itself; what would be read as a divider is left encoded for `Name` to decode.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its path so rewritten; 400 if it is not UTF-8."""
        if scope["type"] in ("http", "websocket"):
            raw = scope.get("raw_path") or scope["path"].encode()
            if b"%" not in raw and raw.isascii():
                await self._app(scope, receive, send)
                return
            try:
                segments = [unquote_to_bytes(part).decode() for part in raw.split(b"/")]
            except UnicodeDecodeError:
                refusal = problem_answer(problem(400, "malformed", "Bad Request", "the path is not UTF-8"))
                await refusal(scope, receive, send)
                return
            whole = [part.replace("%", "%25").replace("/", "%2F") for part in segments]
            # In place, so that whoever is around this sees which route it came to.
            scope["path"] = "/".join(whole)
        await self._app(scope, receive, send)


Name = Annotated[str, Path(min_length=1), AfterValidator(unquote)]
SubmitterType = Annotated[Literal["user", "team"], Path(alias="type")]
TheDesk = Annotated[Desk, Depends(_desk)]
TheCaller = Annotated[Caller, Depends(_caller)]
Limit = Annotated[int, Query(ge=1, le=500, description="How many at most.")]
Cursor = Annotated[str | None, Query(description="The `next` of the page before.")]
Version = Annotated[
    int | None, Query(ge=1, le=(1 << 53) - 1, description="An older version; else the newest.")
]
