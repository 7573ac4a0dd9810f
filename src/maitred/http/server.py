"""The server: uvicorn on a socket that is taken before anything else starts.

Once a second it looks at all connections, and cuts those whose clients are too slow to send or to read. While
no key was made, a server that others could reach would obey anybody; it refuses to listen anywhere but on
loopback.
"""

import asyncio
import contextlib
import ipaddress
import logging
import socket
from collections.abc import Callable, Iterator

import structlog
import uvicorn
from starlette.types import ASGIApp

from maitred.errors import ConfigError
from maitred.http.connection import LOOK_EVERY, Config, Connection
from maitred.http.limits import Limits
from maitred.http.readers import Readers
from maitred.http.websocket import WebSocketConnection

_log = structlog.get_logger()
_NO_NEWS = (
    "ASGI callable returned without completing",
    "Invalid UTF-8 sequence",
    "Invalid HTTP request",
    "Unsupported upgrade",
)
# A tick of uvicorn's is a tenth of a second.
_TICKS = round(LOOK_EVERY * 10)
WARN_EVERY = 60.0
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def take_port(host: str, port: int, *, anywhere: bool = False) -> socket.socket:
    """Listen on a loopback address, or where keys are looked at before anything is served, `anywhere`.

    Port 0 takes a free one. Raises `ConfigError` if the address is not loopback, or cannot be listened on.
    """
    if not anywhere:
        must_be_loopback(host)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    taken = socket.socket(family, socket.SOCK_STREAM)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _notice_the_dead(taken)
        taken.bind((host, port))
        taken.listen(2048)
    except (OSError, OverflowError) as error:
        taken.close()
        raise ConfigError(f"{host}:{port} cannot be listened on: {error}.") from error
    return taken


def must_be_loopback(host: str) -> None:
    """Raise `ConfigError`, which says how to make a key, unless only this host can reach the address."""
    if not _is_loopback(host):
        raise ConfigError(
            f"{host} is not a loopback address, and as long as no key was made Maitred listens on loopback "
            "only. Make one with `maitred keys create --role admin`, or use --host 127.0.0.1."
        )


def _notice_the_dead(taken: socket.socket) -> None:
    """Let connections end whose other side is gone without a word; each one inherits this."""
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 20), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            taken.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def own_hosts(taken: socket.socket) -> frozenset[str]:
    """Give the values of `Host` by which a server on this socket is its own."""
    host, port = taken.getsockname()[:2]
    names = {"127.0.0.1", "localhost", "[::1]", f"[{host}]" if ":" in host else host}
    own = {f"{name}:{port}" for name in names}
    return frozenset(own | names) if port == 80 else frozenset(own)


def address(taken: socket.socket) -> str:
    """Give an address of a server on this socket, by which it can be called from here."""
    host, port = taken.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - nothing is bound to it
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _is_news(record: logging.LogRecord) -> bool:
    """Tell faults of ours from a client's that it was told of, which uvicorn logs as if they were ours.

    A WebSocket that was refused with a proper answer, a text frame that is not UTF-8, a request that is no
    HTTP or too large, and one that wants another protocol.
    """
    return not str(record.msg).startswith(_NO_NEWS)


class Server(uvicorn.Server):
    """A server whose owner decides when it ends: it takes no signals for itself.

    `up` is set once it can be asked.
    """

    def __init__(
        self, app: ASGIApp, *, closing: Callable[[], None] | None = None, limits: Limits | None = None
    ) -> None:
        """Serve an app; `closing` is called when the server is to stop, to end streams that would go on."""
        self.up = asyncio.Event()
        self._closing = closing
        limits = (limits or Limits()).within_descriptors()
        config = Config(
            app,
            http=Connection,
            ws=WebSocketConnection,
            loop="none",
            lifespan="on",
            access_log=False,
            log_level="warning",
            server_header=False,
            timeout_graceful_shutdown=5,
            # A client whose program does not read is not read from either, and so cannot answer.
            ws_ping_timeout=None,
        )
        config.limits = limits
        config.timeout_keep_alive = limits.keep_alive  # type: ignore[assignment]
        self._most, self._warn_next = limits.connections, 0.0
        self._readers = Readers(limits.stall)
        super().__init__(config)
        logging.getLogger("uvicorn.error").addFilter(_is_news)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve."""
        await super().startup(sockets)
        self.up.set()

    async def on_tick(self, counter: int) -> bool:
        """Look at all connections now and then; tell whether to end."""
        if counter % _TICKS == 0:
            now = asyncio.get_running_loop().time()
            self._readers.look(self.server_state.connections, now)
            self._warn_if_full(now)
            for connection in list(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.look(now)
        return await super().on_tick(counter)

    def _warn_if_full(self, now: float) -> None:
        connections = len(self.server_state.connections)
        if connections >= self._most and now >= self._warn_next:
            self._warn_next = now + WARN_EVERY
            _log.warning("there are as many connections as the server takes", connections=connections)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the owner, who has more than a server to stop."""
        yield

    def stop(self) -> None:
        """Take no more requests, answer those under way, and let `serve` return."""
        self.should_exit = True
        if self._closing is not None:
            self._closing()

    def hurry(self) -> None:
        """Once it stops, wait for no answer that is under way."""
        self.force_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End, and let the app tidy up also in a hurry."""
        await super().shutdown(sockets)
        if self.force_exit:
            await self.lifespan.shutdown()


def _is_loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host in LOOPBACK
