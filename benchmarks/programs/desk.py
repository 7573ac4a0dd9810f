"""A program's side of the conversation with the harness: lines of JSON on a unix socket."""

import json
import os
import socket
import threading
from collections.abc import Iterator
from typing import Any


class Desk:
    """The connection to the harness. `say` may be called from any thread."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(os.environ["BENCH_DESK"])
        self._lock = threading.Lock()

    def say(self, **message: Any) -> None:
        line = json.dumps(message).encode() + b"\n"
        with self._lock:
            self._socket.sendall(line)

    def requests(self) -> Iterator[dict[str, Any]]:
        """Give what the harness asks for, until it hangs up."""
        with self._socket.makefile("rb") as lines:
            for line in lines:
                yield json.loads(line)
