"""Who does not read: an answer, a stream or a session that its client leaves in the server is cut.

What was sent and not taken waits in a buffer of the connection, which is bounded. A client that takes almost
nothing of it, second after second, would keep the buffer and its descriptor for ever. People may stop a
terminal to read it, and so sessions have longer.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from maitred.http.connection import LEAST_SPEED, Connection

if TYPE_CHECKING:
    from uvicorn.server import Protocols

# How many times as long a session may stand still.
SESSIONS = 10


class _Left(NamedTuple):
    """What was left to take, and since when hardly anything was taken."""

    size: int
    since: float


class Readers:
    """Remembers from look to look who has something left; whoever takes nothing for `stall` is cut."""

    def __init__(self, stall: float) -> None:
        self._stall = stall
        self._left: dict[Protocols, _Left] = {}

    def look(self, connections: "Collection[Protocols]", now: float) -> None:
        """Look at all connections; called once a second."""
        left: dict[Protocols, _Left] = {}
        for connection in list(connections):
            size = connection.transport.get_write_buffer_size()
            if not size:
                continue
            before = self._left.get(connection)
            since = now if before is None or before.size - size >= LEAST_SPEED else before.since
            most = self._stall if isinstance(connection, Connection) else SESSIONS * self._stall
            if now - since > most:
                connection.transport.abort()
            else:
                left[connection] = _Left(size, since)
        self._left = left
