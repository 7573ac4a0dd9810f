"""Pages from elsewhere that may call: those whose origin is named in the settings, and by a key of their own.

A browser asks before the call itself, without a key. Cookies and the like are never looked at, so none is
asked for either.
"""

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

from maitred.http.answer import problem, problem_answer

METHODS = ("GET", "PUT", "POST", "DELETE")
MAY_SEND = ("Authorization", "Content-Type", "Last-Event-ID")
MAY_READ = ("Retry-After", "WWW-Authenticate", "Allow", "Content-Disposition")


class Cors(CORSMiddleware):
    """Lets pages of these origins call; what others ask beforehand is answered with a problem."""

    def __init__(self, app: ASGIApp, origins: Collection[str]) -> None:
        super().__init__(
            app,
            allow_origins=origins,
            allow_methods=METHODS,
            allow_headers=MAY_SEND,
            expose_headers=MAY_READ,
        )

    def preflight_response(self, request_headers: Headers) -> Response:
        """Answer what a browser asks before the call: 204, or 403 if this page may not make it."""
        answer = super().preflight_response(request_headers)
        kept = {
            name: value
            for name, value in answer.headers.items()
            if name == "vary" or name.startswith("access-control-")
        }
        if answer.status_code == 200:
            return Response(status_code=204, headers=kept)
        says = "this origin, or what it asks for, is not allowed by server.cors"
        refused = problem_answer(problem(403, "not-own-host", "Forbidden", says))
        if "vary" in kept:
            refused.headers["vary"] = kept["vary"]
        return refused
