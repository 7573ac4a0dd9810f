"""Measures requests: how many of each route came to which answer, and how long that took.

A stream counts when it begins. What has no route, as a wrong path or a stranger's host, is `unmatched`, so
that nobody can make up labels.
"""

import time
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)
UNMATCHED = "unmatched"
_METHODS = frozenset({"GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS"})


class RequestMetrics:
    """Requests of one app."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "maitred_http_requests",
            "Requests by route and status.",
            ("method", "route", "status"),
            registry=registry,
        )
        self._seconds = Histogram(
            "maitred_http_request_seconds",
            "Time from a request to the begin of its answer.",
            ("method", "route"),
            buckets=SECONDS,
            registry=registry,
        )
        self._children: dict[tuple[str, str, int], tuple[Any, Any]] = {}

    def note(self, method: str, route: str, status: int, seconds: float) -> None:
        """Note one answer."""
        key = (method if method in _METHODS else "other", route, status)
        if key not in self._children:
            count = self._requests.labels(key[0], route, str(status))
            self._children[key] = (count, self._seconds.labels(key[0], route))
        count, spent = self._children[key]
        count.inc()
        spent.observe(seconds)


class Metered:
    """Measures all requests of an app; it must be the outermost, to see what others refuse."""

    def __init__(self, app: ASGIApp, metrics: RequestMetrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and note the begin of its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", UNMATCHED)
                self._metrics.note(scope["method"], route, message["status"], time.perf_counter() - begun)
            await send(message)

        await self._app(scope, receive, noted)
