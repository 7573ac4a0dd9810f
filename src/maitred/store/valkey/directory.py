"""The data directory of an embedded server: who owns it, and what the owner noted there.

    appendonlydir/   the data: the server's append-only file
    server.log       what the server says; an old one that has grown is kept as server.log.1
    embedded.json    the note: where the socket is, and who runs it
    owner.lock       held by the process that owns the directory; its pid is in it
    server.lock      held by the server itself

Two servers that append to one file would destroy it, so there are two locks. The owner's refuses a second
owner at once. The server's outlives an owner that was killed, until the server has ended too; a new owner
waits for that. Both are held through an open file, so the kernel gives them up however a process ends.
"""

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any, BinaryIO

from maitred.errors import DataDirectoryInUse, EmbeddedError

LOG_LIMIT = 1 << 20
OLD_SERVER_PATIENCE = 15.0
_PAUSE = 0.02


def note(data: Path) -> dict[str, Any] | None:
    """Read what a running owner noted in its data directory: at least `socket`, `pid` and `server_pid`.

    None if no server runs on it. Raises `EmbeddedError` if the directory may not be read.
    """
    try:
        lock = os.open(data / "server.lock", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return None if _try_lock(lock, fcntl.LOCK_SH) else DataDirectory(data).read_note()
        finally:
            os.close(lock)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise EmbeddedError(f"The data directory {data} cannot be read: {error.strerror}.") from error


class DataDirectory:
    """One data directory, and this process's hold on it.

    Methods that touch the disk raise `OSError` when it does not let them.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._owner_lock: int | None = None

    def own(self) -> None:
        """Make the directory if it is not there, and take it; raises `DataDirectoryInUse` if it is taken."""
        if self.path.exists() and not self.path.is_dir():
            raise EmbeddedError(f"The data directory {self.path} is a file and not a directory.")
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = self._open_lock("owner.lock")
        if not _try_lock(lock, fcntl.LOCK_EX):
            pid = _read_pid(lock)
            os.close(lock)
            owner = "another process" if pid is None else f"process {pid}"
            raise DataDirectoryInUse(
                f"The data directory {self.path} is in use by {owner}; "
                "stop that one or choose another directory.",
                pid=pid,
            )
        self._owner_lock = lock
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)

    def take_server_lock(self) -> int:
        """Give the server's lock, as a descriptor for the server to inherit and the caller to close.

        The server of an owner that was killed may still be writing its last, so this waits for some seconds.
        """
        lock = self._open_lock("server.lock")
        patience = time.monotonic() + OLD_SERVER_PATIENCE
        while not _try_lock(lock, fcntl.LOCK_EX):
            if time.monotonic() > patience:
                os.close(lock)
                pid = (self.read_note() or {}).get("server_pid")
                raise DataDirectoryInUse(
                    f"The data directory {self.path} is in use by a server whose owner is gone "
                    f"and that does not end (process {pid or 'unknown'}); end it and start again.",
                    pid=pid,
                )
            time.sleep(_PAUSE)
        return lock

    def give_up(self) -> None:
        """Remove the note and let the next owner in; does nothing if this process does not own it."""
        if self._owner_lock is not None:
            try:
                (self.path / "embedded.json").unlink(missing_ok=True)
            finally:
                self.forget()

    def forget(self) -> None:
        """Close this process's copy of the lock and touch nothing else, as a forked child must."""
        if self._owner_lock is not None:
            os.close(self._owner_lock)
            self._owner_lock = None

    def read_note(self) -> dict[str, Any] | None:
        """Read the note, whether or not who wrote it still runs; None if there is none that makes sense."""
        try:
            found = json.loads((self.path / "embedded.json").read_text("utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def write_note(self, facts: dict[str, Any]) -> None:
        """Replace the note in one step, so that nobody reads half of one."""
        fresh = self.path / "embedded.json.new"
        fresh.write_text(json.dumps(facts) + "\n", "utf-8")
        fresh.replace(self.path / "embedded.json")

    def open_log(self) -> BinaryIO:
        """Open the server's log for more; one that has grown past its limit is put aside first."""
        log = self.path / "server.log"
        if log.exists() and log.stat().st_size > LOG_LIMIT:
            log.replace(self.path / "server.log.1")
        return log.open("ab")

    def last_words(self) -> str:
        """Give the last line of the server's log."""
        lines = (self.path / "server.log").read_text("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "nothing")

    def _open_lock(self, name: str) -> int:
        return os.open(self.path / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _try_lock(lock: int, kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read_pid(lock: int) -> int | None:
    text = os.pread(lock, 32, 0).decode(errors="replace")
    return int(text) if text.isdecimal() else None
