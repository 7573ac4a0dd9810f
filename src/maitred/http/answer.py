"""Answers and problems: how what the desk gives, or refuses, goes over the wire.

A problem's `type` ends with the error's code, which is stable; its `detail` is a sentence for people.
"""

from http import HTTPStatus

from starlette.responses import Response

from maitred.errors import (
    Conflict,
    Forbidden,
    IllegalMove,
    InvalidJob,
    MaitredError,
    NotFound,
    QueueFull,
    StoreError,
    TooLarge,
    TooOften,
    Unauthorized,
)
from maitred.service.document import Document
from maitred.wire import encode_json

PROBLEM = "application/problem+json"
RETRY_AFTER = "10"

_STATUS: dict[type[MaitredError], int] = {
    InvalidJob: 422,
    TooLarge: 413,
    QueueFull: 429,
    TooOften: 429,
    Unauthorized: 401,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    StoreError: 503,
}


def answer(value: object, status: int = 200) -> Response:
    """Answer with JSON."""
    return Response(encode_json(value), status, media_type="application/json")


def problem(status: int, code: str, title: str, detail: str) -> Document:
    """Give a problem, as RFC 9457 has it."""
    return {"type": f"urn:maitred:problem:{code}", "title": title, "status": status, "detail": detail}


def problem_of(error: MaitredError) -> Document:
    """Give the problem that an error is."""
    status = next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), 500)
    title = "The request has faults" if isinstance(error, InvalidJob) else _title(error)
    document = problem(status, error.code, title, str(error))
    if isinstance(error, InvalidJob):
        document["errors"] = [fault._asdict() for fault in error.faults]
    elif isinstance(error, QueueFull):
        document |= {"limit": error.limit, "which": error.which}
    elif isinstance(error, TooLarge):
        document |= {"limit": error.limit, "size": error.size}
    elif isinstance(error, TooOften):
        document["wait"] = error.wait
    elif isinstance(error, IllegalMove):
        document |= {"old": error.old, "new": error.new}
    return document


def problem_answer(document: Document) -> Response:
    """Answer with a problem, and say when to come again where that makes sense."""
    status = document["status"]
    headers = {"Retry-After": str(document.get("wait", RETRY_AFTER))} if status in (429, 503) else {}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(encode_json(document), status, headers, PROBLEM)


def _title(error: MaitredError) -> str:
    return (type(error).__doc__ or "").partition("\n")[0].rstrip(".")
