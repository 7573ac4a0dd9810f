"""Who does not read: an answer, a stream or a session that its client leaves in the server is cut.

What was sent and not taken waits in a buffer of the connection, which is bounded. A client that takes almost
nothing of it, second after second, would keep the buffer and its descriptor for ever.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from maitred.http.connection import LEAST_SPEED

if TYPE_CHECKING:
    from uvicorn.server import Protocols


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
            if now - since > self._stall:
                connection.transport.abort()
            else:
                left[connection] = _Left(size, since)
        self._left = left
