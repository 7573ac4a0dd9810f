"""One client's connection: its requests come whole, in time and in bounds, or it is told why and closed.

The parser below keeps what it was sent until a header is whole, and waits for as long as that takes. Here a
header has a size and a time, and a body has to come at a least speed. Time that the server itself is slow to
read does not count. Nothing is timed for each request: once a second all connections are looked at.
"""

import asyncio
from enum import Enum, auto
from http import HTTPStatus
from typing import Any, NamedTuple

import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from maitred.http.answer import PROBLEM, RETRY_AFTER, problem
from maitred.http.limits import Limits
from maitred.http.strict import STRICT
from maitred.wire import encode_json

LOOK_EVERY = 1.0
# How long one that was refused may go on to send.
LINGER = 0.9
# The least speed of a body, in bytes a second.
LEAST_SPEED = 1024
# How many bytes of chunk sizes and the like there may be for each byte of a body.
MOST_FRAMING = 16


class Config(uvicorn.Config):
    """What uvicorn is told, and the limits that it does not know."""

    limits = Limits()


class Refusal(NamedTuple):
    """Why a request is not passed on."""

    status: int
    code: str
    detail: str


_NO_HTTP = Refusal(400, "malformed", "the request is not HTTP/1.1")
_LONG_URL = Refusal(414, "header-too-large", "the path and query are too long")
_LARGE_HEADER = Refusal(431, "header-too-large", "the header is too large")
_SLOW_HEADER = Refusal(408, "too-slow", "the header did not come in time")
_SLOW_BODY = Refusal(408, "too-slow", "the body came too slowly")
_FULL = Refusal(503, "too-many-connections", "the server has as many connections as it takes")


class _Refused(Exception):
    """Ends the parsing of a request that is refused."""


class _Part(Enum):
    """What a connection is at: nothing, or what comes in; `REST` is of a body that nobody waits for.

    One that was refused stays for a moment, since to close it while its client still sends would take the
    answer from it.
    """

    IDLE = auto()
    HEADER = auto()
    BODY = auto()
    REST = auto()
    REFUSED = auto()


class Connection(HttpToolsProtocol):
    """A connection with limits; one too many is told so, and far too many are closed at once."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = config.limits
        self._why = _NO_HTTP
        self._full = False
        self._came = self._body = 0
        self.url = b""
        self._begin()

    # ---------------------------------------------------------------- what comes in

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a client in, as far as there is room."""
        most = self._limits.connections
        self._full = len(self.connections) >= most
        super().connection_made(transport)
        if len(self.connections) > most + most // 16 + 1:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read on, within bounds."""
        if self._part is _Part.REFUSED:
            return
        if self._part is _Part.IDLE:
            self._begin()
        self._came += len(data)
        super().data_received(data)
        if self._came > self._limits.header and not self._in_bounds():
            self.refuse(_LONG_URL if len(self.url) > self._limits.header else _LARGE_HEADER)

    def on_message_begin(self) -> None:
        """Begin a request, be it in the same piece as the one before."""
        super().on_message_begin()
        if self._part is not _Part.HEADER:
            self._begin()

    def on_headers_complete(self) -> None:
        """Pass a request on whose header is in bounds."""
        if self._full:
            self._refuse_within(_FULL)
        most = self._limits.header
        if self._came > most and len(self.url) + sum(len(n) + len(v) for n, v in self.headers) > most:
            self._refuse_within(_LONG_URL if len(self.url) > most else _LARGE_HEADER)
        self._part, self._since = _Part.BODY, self.loop.time()
        self._came = self._body = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body."""
        self._body += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that a request is whole."""
        self._part = _Part.IDLE
        super().on_message_complete()

    def _begin(self) -> None:
        self._part, self._since = _Part.HEADER, self.loop.time()
        self._came = self._body = 0

    def _in_bounds(self) -> bool:
        """Tell whether what is around a body, or a header that is not whole yet, may be so large."""
        if self._part in (_Part.IDLE, _Part.REFUSED):
            return True
        return self._came - self._body <= self._limits.header + MOST_FRAMING * self._body

    # ---------------------------------------------------------------- who is too slow

    def look(self, now: float) -> None:
        """Close the connection if its client takes too long to send; called once a second."""
        took, patience = now - self._since, self._limits.patience
        if self._part is _Part.HEADER and took > patience:
            if self._came:
                self.refuse(_SLOW_HEADER)
            else:
                self.transport.close()
        elif self._part is _Part.BODY and self.cycle is not None:
            if self.flow.read_paused:
                self._since += LOOK_EVERY
            elif self.cycle.response_complete:
                self._part, self._since = _Part.REST, now
            elif took > patience + self._body / LEAST_SPEED:
                self.refuse(_SLOW_BODY)
        elif (self._part is _Part.REST and took > patience) or (
            self._part is _Part.REFUSED and took > LINGER
        ):
            self.transport.abort()

    # ---------------------------------------------------------------- refusing

    def refuse(self, why: Refusal) -> None:
        """Answer with a problem and close; just close if another answer is under way."""
        if self.transport.is_closing() or self._part is _Part.REFUSED:
            return
        # It is None before the first request, whatever is said of it there.
        cycle: RequestResponseCycle | None = self.cycle
        own = self._part is _Part.BODY and not self.pipeline
        if cycle and not cycle.response_complete and (cycle.response_started or not own):
            self.transport.abort()
            return
        body = encode_json(problem(why.status, why.code, HTTPStatus(why.status).phrase, why.detail))
        headers = [
            (b"content-type", PROBLEM.encode()),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
            *STRICT,
        ]
        if why is _FULL:
            headers.append((b"retry-after", RETRY_AFTER.encode()))
        lines = b"".join(b"%b: %b\r\n" % header for header in (*self.server_state.default_headers, *headers))
        self.transport.write(b"%b%b\r\n%b" % (STATUS_LINE[why.status], lines, body))
        self.transport.write_eof()
        self._part, self._since = _Part.REFUSED, self.loop.time()
        if cycle:
            # Whoever waits for the rest of the request learns that there is none.
            cycle.disconnected = True
            cycle.message_event.set()

    def shutdown(self) -> None:
        """Let an answer that is under way come to its end, and the connection with it."""
        if self._part is _Part.REFUSED:
            self.transport.abort()
        else:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - what the parser says of it
        """Refuse what could not be parsed, or was refused while it was."""
        self.refuse(self._why)

    def _refuse_within(self, why: Refusal) -> None:
        """Refuse from within the parser, which then ends."""
        self._why = why
        raise _Refused
