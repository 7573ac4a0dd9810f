"""The loopback rule: while no key was made, only this machine's own callers may ask.

A page from elsewhere that runs in a browser here can reach a loopback address too. It betrays itself by its
`Origin`, or by the `Host` of a name that was pointed at 127.0.0.1; both are refused, but for the origins that
the settings name. Once there are keys it would have to know one.
"""

from collections.abc import Awaitable, Callable, Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from maitred.errors import StoreError
from maitred.http.answer import problem, problem_answer


class OwnHostOnly:
    """Refuses requests whose `Host` or `Origin` is not one of the server's own names, nor of the `origins`.

    It does so `unless` there are keys.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: Collection[str],
        origins: Collection[str],
        unless: Callable[[], Awaitable[bool]],
    ) -> None:
        self._app = app
        self._origins = frozenset(origins)
        self._unless = unless
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 403."""
        refused = self._refused(Headers(scope=scope)) if scope["type"] in ("http", "websocket") else None
        if refused and not await self._guarded():
            document = problem(403, "not-own-host", "Forbidden", refused)
            await problem_answer(document)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _guarded(self) -> bool:
        try:
            return await self._unless()
        except StoreError:
            return False

    def _refused(self, headers: Headers) -> str | None:
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return "the Host of the request is not this server's own address"
        for origin in origins:
            scheme, _, host = origin.lower().partition("://")
            own = scheme in ("http", "https") and host in self._hosts
            if not own and origin.lower() not in self._origins:
                return "the Origin of the request is not this server"
        return None
