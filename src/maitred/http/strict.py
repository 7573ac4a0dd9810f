"""Strict headers on every answer: no page of ours is framed, sniffed, cached or leaked, nor loads anything.

A page that needs more than nothing says so itself, in its own content security policy.
"""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_POLICY = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")
_ALWAYS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    # Answers may hold keys, and all of them are of the moment.
    (b"cache-control", b"no-store"),
]
STRICT = [_POLICY, *_ALWAYS]


class Strict:
    """Adds the headers to each answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and add the headers to its answer."""

        async def strictly(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = message["headers"]
                own = any(name == _POLICY[0] for name, _ in headers)
                message["headers"] = [*headers, *(_ALWAYS if own else STRICT)]
            await send(message)

        await self._app(scope, receive, strictly)
