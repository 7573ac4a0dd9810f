"""Goes on with the trace that a caller names in its headers, where somebody traces."""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from maitred.service import tracing


class Traced:
    """Lets what is done for a request be part of its caller's trace."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http" or not tracing.on():
            await self._app(scope, receive, send)
            return
        with tracing.incoming(Headers(scope=scope)):
            await self._app(scope, receive, send)
