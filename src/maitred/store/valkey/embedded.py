"""The embedded store: a private Valkey server on a data directory, for as long as its owner lives.

`maitred up` needs no server to be installed or configured: it runs one itself, which listens on no port but
on a unix socket that only this user can open. The socket lies in a short directory of its own, since a
socket's path may not be longer than about a hundred bytes while a data directory's may; the note in the data
directory says where it is. The server ends with its owner, however that ends; the data stays and is there
again at the next start.
"""

import contextlib
import os
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, Self
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from maitred.errors import EmbeddedError
from maitred.store.valkey.binary import Server, describe, find_server
from maitred.store.valkey.directory import DataDirectory, note
from maitred.store.valkey.tether import Tethered

__all__ = ["Durability", "Embedded", "Server", "find_server", "note"]

Durability = Literal["always", "everysec"]

# The shortest limit among the systems that we run on (104 on macOS, 108 on Linux), less the final zero byte.
SOCKET_PATH_LIMIT = 103
ANSWER_PATIENCE = 30.0
STOP_PATIENCE = 30.0
_PAUSE = 0.01
_SOCKET = "valkey.sock"
_PREFIX = "maitred-"

_started: weakref.WeakSet["Embedded"] = weakref.WeakSet()


class Embedded:
    """One private Valkey server on a data directory, owned by this process.

    After a crash of the whole machine at most the last second of writes is missing with `everysec`, none with
    `always`; a crash of the process or the server alone loses nothing that was answered. `binary` is for
    those who want a certain server. After `start` there are `socket`, `url`, `pid` (the server's) and
    `allocator`.
    """

    socket: Path
    url: str
    pid: int
    allocator: str

    def __init__(
        self, data: Path, *, durability: Durability = "everysec", binary: Path | None = None
    ) -> None:
        self.data = data.absolute()
        self.durability: Durability = durability
        self._binary = binary
        self._directory = DataDirectory(self.data)
        self._process: Tethered | None = None
        self._home: Path | None = None
        self._hurried = threading.Event()

    def start(self) -> None:
        """Start the server and wait until it answers; it reads its data back first.

        Does nothing if it runs. A server that has crashed comes back on the same socket, since others know
        that one; if it cannot, it can be tried again. Raises `DataDirectoryInUse` if another process owns the
        directory, and `EmbeddedError` if the directory cannot be used, there is no server program, or it does
        not come up.
        """
        if self.running:
            return
        crashed = self._home is not None
        try:
            self._end_process()
            server = find_server() if self._binary is None else describe(self._binary)
            if not crashed:
                self._directory.own()
            _started.add(self)
            self._process = self._launch(server)
            self.pid = self._process.pid
            self.allocator = _allocator(server, self.pid, built_in=self._await_answer())
            self._directory.write_note(
                {"socket": str(self.socket), "pid": os.getpid(), "server_pid": self.pid}
            )
        except OSError as error:
            self._give_up(crashed=crashed)
            reason = error.strerror or str(error)
            raise EmbeddedError(f"The data directory {self.data} cannot be used: {reason}.") from error
        except BaseException:
            self._give_up(crashed=crashed)
            raise

    def hurry(self) -> None:
        """Let a start that is under way in another thread fail soon, since its owner wants to stop."""
        self._hurried.set()

    def stop(self) -> None:
        """End the server in order, keep its data, and give up the directory; does nothing if it does not run.

        A server that does not end in half a minute is killed; the append-only file survives that.
        """
        self._end_process()
        if self._home is not None:
            _remove_home(self._home)
            self._home = None
        self._directory.give_up()
        self._hurried.clear()
        _started.discard(self)

    @property
    def running(self) -> bool:
        """Whether the server runs; false after it crashed, too, and then `start` starts it again."""
        return self._process is not None and self._process.running

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _end_process(self) -> None:
        if self._process is not None:
            self._process.stop(STOP_PATIENCE)
            self._process = None

    def _give_up(self, *, crashed: bool) -> None:
        """After a start that failed: a directory that was owned before stays so."""
        if crashed:
            self._end_process()
        else:
            self.stop()

    def _launch(self, server: Server) -> Tethered:
        lock = self._directory.take_server_lock()
        try:
            if self._home is None:
                # Only now is it certain that nobody uses the socket of an owner that was killed.
                if left_behind := (self._directory.read_note() or {}).get("socket"):
                    _remove_home(Path(left_behind).parent)
                self._home = _make_home()
            self.socket = self._home / _SOCKET
            self.url = f"unix://{quote(str(self.socket))}"
            with self._directory.open_log() as log:
                return Tethered(
                    [server.path.absolute(), *_options(self.socket, self.durability)],
                    cwd=self.data,
                    output=log.fileno(),
                    environment=_environment(server),
                    keep=[lock],
                )
        finally:
            os.close(lock)

    def _await_answer(self) -> str:
        """Wait until the server answers, and give its allocator's name. Reading back much data takes long."""
        patience = time.monotonic() + ANSWER_PATIENCE
        client = redis.Redis(unix_socket_path=str(self.socket), socket_timeout=1, retry=Retry(NoBackoff(), 0))
        with contextlib.closing(client):
            while self.running:
                if self._hurried.is_set():
                    raise EmbeddedError("The start of the embedded server was given up.")
                try:
                    client.ping()
                    return str(client.info("memory")["mem_allocator"])
                except redis.BusyLoadingError:
                    patience = time.monotonic() + ANSWER_PATIENCE
                except (redis.ConnectionError, redis.TimeoutError) as error:
                    if time.monotonic() > patience:
                        raise EmbeddedError(f"The embedded server does not answer: {error}") from error
                time.sleep(_PAUSE)
        raise EmbeddedError(
            f"The embedded server ended at once; {self.data / 'server.log'} ends with: "
            f"{self._directory.last_words()}"
        )

    def _forget(self) -> None:
        """Let go of everything without touching it: in a forked child, all of it is the parent's."""
        if self._process is not None:
            self._process.forget()
        self._process = None
        self._home = None
        self._directory.forget()


def _options(socket: Path, durability: Durability) -> Iterator[str]:
    """Give the server's options.

    The data directory is its working directory and never named, so no character in its path needs quoting.
    The append-only file is all commands: the compact form of a new server cannot be read by an older one, and
    which server is found first may change from one start to the next.
    """
    for name, value in {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": "./",
        "appendonly": "yes",
        "appendfsync": durability,
        "aof-load-truncated": "yes",
        "aof-use-rdb-preamble": "no",
        "auto-aof-rewrite-percentage": "100",
        "auto-aof-rewrite-min-size": "256mb",
        "save": "",
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
        "always-show-logo": "no",
    }.items():
        yield f"--{name}"
        yield value


def _environment(server: Server) -> dict[str, str]:
    # How the server sorts, and whether it starts, must not depend on the locale of whoever started it.
    environment = {**os.environ, "LC_ALL": "C"}
    if server.preload is not None:
        environment["LD_PRELOAD"] = str(server.preload)
    return environment


def _allocator(server: Server, pid: int, built_in: str) -> str:
    """Name what really allocates: the server tells what it was built with, not what was preloaded."""
    if server.preload is not None and server.preload.name in Path(f"/proc/{pid}/maps").read_text("utf-8"):
        return f"{server.preload.name} (preloaded)"
    return built_in


def _make_home() -> Path:
    """Make a private directory for the socket, with a short path.

    /tmp comes before XDG_RUNTIME_DIR, which is taken away when its user logs out, with the server still
    running.
    """
    for parent in ("/tmp", os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir()):  # noqa: S108
        if parent and len(os.fsencode(parent)) + len(f"/{_PREFIX}12345678/{_SOCKET}") <= SOCKET_PATH_LIMIT:
            with contextlib.suppress(OSError):
                return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    raise EmbeddedError(
        "There is no place for the embedded server's socket: neither /tmp, XDG_RUNTIME_DIR nor TMPDIR "
        "is a directory with a short path that this user may write to."
    )


def _remove_home(home: Path) -> None:
    """Remove a socket's directory, if it is one that `_make_home` made."""
    if home.name.startswith(_PREFIX):
        with contextlib.suppress(OSError):
            (home / _SOCKET).unlink(missing_ok=True)
            home.rmdir()


def _forget_all() -> None:
    for embedded in list(_started):
        embedded._forget()  # noqa: SLF001 - this module's own class
    _started.clear()


# A child that was forked, and not made by running a program, has copies of the lock's and the rope's
# descriptors; with them the directory would stay locked, and the server alive, for as long as the child
# lives.
os.register_at_fork(after_in_child=_forget_all)
