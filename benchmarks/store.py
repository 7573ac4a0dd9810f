"""What the harness asks of the store's server: who it is, and what it counts about itself.

These are single INFO calls before and after a measurement, and a watch over an idle server; never during a
busy one.
"""

import contextlib
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

_SCRIPT_CALLS = ("cmdstat_fcall", "cmdstat_fcall_ro", "cmdstat_evalsha", "cmdstat_evalsha_ro", "cmdstat_eval")
_REST_SECONDS = 10.0
_REST_PAUSE = 0.2
# `everysec`, and a little.
_FLUSH_EVERY = 1.1


@dataclass(frozen=True)
class Store:
    """A running server: its socket, what allocates in it, and a connection of the harness's own."""

    socket: Path
    allocator: str
    client: "redis.Redis"

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    def server(self) -> str:
        """Name the server and its version."""
        facts = self._info("server")
        if "valkey_version" in facts:
            return f"Valkey {facts['valkey_version']}"
        return f"Redis {facts['redis_version']}"

    def used_memory_at_rest(self) -> int:
        """Give the bytes in use, once the buffers of what was just written are gone."""
        previous, used = -1, self._used_memory()
        deadline = time.monotonic() + _REST_SECONDS
        while used != previous and time.monotonic() < deadline:
            time.sleep(_REST_PAUSE)
            previous, used = used, self._used_memory()
        return used

    def script_time(self) -> "ScriptTime":
        """Give how many script calls there were so far, and the microseconds spent in them."""
        facts = self._info("commandstats")
        found = [facts[name] for name in _SCRIPT_CALLS if name in facts]
        return ScriptTime(sum(int(each["calls"]) for each in found), sum(int(each["usec"]) for each in found))

    def commands_received(self, seconds: float) -> int:
        """Count the commands that clients send in some seconds.

        The server's own totals count what scripts call too, and a client's counter goes with its connection,
        so it is watched. Watching costs the server work per command: only for times with few of them.
        """
        with socket.socket(socket.AF_UNIX) as watch:
            watch.connect(str(self.socket))
            watch.sendall(b"MONITOR\r\n")
            time.sleep(seconds)
            watch.settimeout(_REST_PAUSE)
            seen = b""
            with contextlib.suppress(TimeoutError):
                while piece := watch.recv(65536):
                    seen += piece
        # The first line agrees to the watch; what a script calls is marked as coming from it.
        return sum(b" lua] " not in line for line in seen.splitlines()[1:])

    def wait_until_flushed(self, within: float) -> None:
        """Wait until what was written has reached the disk: flushing a lot of it slows what comes next."""
        deadline = time.monotonic() + within
        time.sleep(_FLUSH_EVERY)
        while int(self._info("persistence")["aof_pending_bio_fsync"]) and time.monotonic() < deadline:
            time.sleep(_REST_PAUSE)

    def _used_memory(self) -> int:
        return int(self._info("memory")["used_memory"])

    def _info(self, section: str) -> dict[str, Any]:
        return self.client.info(section)


@dataclass(frozen=True)
class ScriptTime:
    """Calls of scripts and functions, and the server's time in them."""

    calls: int
    microseconds: int

    def since(self, earlier: "ScriptTime") -> "ScriptTime":
        return ScriptTime(self.calls - earlier.calls, self.microseconds - earlier.microseconds)
