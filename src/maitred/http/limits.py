"""What a client may take of the server: how much at once, and how long."""

import resource
from typing import NamedTuple

# Descriptors for all but clients: the store, the data directory, the programs that workers run.
SPARE = 256


class Limits(NamedTuple):
    """The limits of connections; `header` is bytes, the rest below `connections` is seconds.

    `patience` is how long a client may take to send a header, and how much longer a body may take than it
    would at the slowest speed that is allowed. Whoever has not read for `stall` is cut. Between two requests
    a connection is kept open for `keep_alive`.
    """

    connections: int = 4096
    header: int = 32 << 10
    patience: float = 10.0
    stall: float = 60.0
    keep_alive: float = 15.0

    def within_descriptors(self) -> "Limits":
        """Give as many connections as there can be with descriptors left for all else.

        The process takes as many descriptors as that needs, as far as it may.
        """
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = self.connections + SPARE
        if soft == resource.RLIM_INFINITY or soft >= wanted:
            return self
        most = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        return self._replace(connections=max(most - SPARE, most // 2))
