"""The route of every call over HTTP: first it is seen who calls and what is asked, then the call is made.

Where an endpoint needs nothing from the request but names in its path, it is called directly: FastAPI finds
out anew for each request what is needed, which takes longer than most of our calls. It describes all routes,
and reads queries, headers and choices in the path.
"""

from collections.abc import Callable, Coroutine
from inspect import signature
from typing import Any
from urllib.parse import unquote

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.routing import request_response

from maitred.http.access import authorise
from maitred.http.incoming import drop_empty, only_known, the_caller, the_desk

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class Route(APIRoute):
    """Answers those who may call; an endpoint names what it needs of `request`, `desk` and `caller`."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **more: Any) -> None:
        """Make the route; one that is called directly has no dependencies that would have to be ended."""
        super().__init__(path, endpoint, **more)
        if self._direct() is not None:
            self.app = request_response(self.get_route_handler())

    def get_route_handler(self) -> Handler:
        """Give what answers a request."""
        serve = self._direct() or super().get_route_handler()
        # Probes and scrapers may add to the address what they like.
        strict = self.path.startswith("/api/")

        async def handle(request: Request) -> Response:
            drop_empty(request)
            await authorise(request, the_desk(request))
            if strict:
                only_known(request)
            return await serve(request)

        return handle

    def _direct(self) -> Handler | None:
        """Give what calls the endpoint; None if something has to be read for it."""
        needs, endpoint = self.dependant, self.endpoint
        path = [each.name for each in needs.path_params]
        names_only = all(each.field_info.annotation is str for each in needs.path_params)
        if needs.query_params or needs.header_params or not names_only:
            return None
        wanted = frozenset(signature(endpoint).parameters)

        async def call(request: Request) -> Response:
            values: dict[str, object] = {name: unquote(request.path_params[name]) for name in path}
            if "request" in wanted:
                values["request"] = request
            if "desk" in wanted:
                values["desk"] = the_desk(request)
            if "caller" in wanted:
                values["caller"] = the_caller(request)
            answer: Response = await endpoint(**values)
            return answer

        return call
