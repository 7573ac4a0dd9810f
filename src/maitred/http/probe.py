"""Health of a process that has no server: `/healthz`, `/readyz` and `/metrics` on loopback, for probes.

It answers from threads of its own. So a worker whose loop is blocked by a handler is told of, too.
"""

import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from typing import Self

from maitred.http.answer import PROBLEM, problem
from maitred.http.server import own_hosts
from maitred.service.health import Health, trouble
from maitred.service.metrics import MEDIA_TYPE
from maitred.wire import encode_json

PATIENCE = 5.0


class Probe:
    """Answers on a socket for as long as the block lasts.

    `workers` tells how they are, and `exposition` what they count, from any thread.
    """

    def __init__(
        self, taken: socket, workers: Callable[[], Sequence[Health]], exposition: Callable[[], bytes]
    ) -> None:
        handler = _handler(taken, workers, exposition)
        self._server = ThreadingHTTPServer(taken.getsockname()[:2], handler, False)
        self._server.socket.close()
        self._server.socket = taken
        self._thread = threading.Thread(target=self._server.serve_forever, name="maitred-health", daemon=True)

    def __enter__(self) -> Self:
        """Begin to answer."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._thread.join()


def _readiness(workers: Sequence[Health]) -> tuple[int, str, object]:
    shown = [each.document() for each in workers]
    why = trouble(workers) if workers else "it has no worker yet"
    if why:
        return 503, PROBLEM, problem(503, "not-ready", "Not ready", why) | {"workers": shown}
    return 200, "application/json", {"status": "ready", "workers": shown}


def _handler(
    taken: socket, workers: Callable[[], Sequence[Health]], exposition: Callable[[], bytes]
) -> type[BaseHTTPRequestHandler]:
    hosts = own_hosts(taken)

    class Handler(BaseHTTPRequestHandler):
        timeout = PATIENCE

        def do_GET(self) -> None:
            if self.headers.get("Host", "").lower() not in hosts or "Origin" in self.headers:
                says = "the Host of the request is not this process's own address"
                self._answer(403, PROBLEM, problem(403, "not-own-host", "Forbidden", says))
            elif self.path == "/healthz":
                self._answer(200, "application/json", {"status": "ok"})
            elif self.path == "/readyz":
                self._answer(*_readiness(workers()))
            elif self.path == "/metrics":
                self._send(200, MEDIA_TYPE, exposition())
            else:
                says = "there are /healthz, /readyz and /metrics"
                self._answer(404, PROBLEM, problem(404, "no-such-route", "Not Found", says))

        def _answer(self, status: int, kind: str, document: object) -> None:
            self._send(status, kind, encode_json(document))

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing: a probe asks every few seconds."""

    return Handler
