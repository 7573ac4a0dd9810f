"""All processes of one run, whatever they did to get away: found, counted, signalled, ended.

In a bubble they are those of a process namespace, which ends with its first process. Without one they are
those of a user that nobody else has; and where the worker may not choose one, those of the run's session and
those whose environment shows that they come from it.
"""

import contextlib
import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

_PROC = Path("/proc")
MARK = "MAITRED_ROOM"


class Usage(NamedTuple):
    """What a tree uses: processes and threads, and memory in bytes."""

    processes: int
    memory: int


class Tree(Protocol):
    """The processes of one run."""

    def members(self) -> Iterable[int]:
        """List the processes by their numbers here."""

    def usage(self, enough: int) -> Usage:
        """Count what is used; memory to the last byte only if it may be more than `enough`."""

    def kill(self) -> bool:
        """Send SIGKILL to all of it; tell whether there was anybody."""


class Bubble:
    """Those in the process namespace that bubblewrap made; `outer` is the process that the worker started."""

    def __init__(self, outer: int) -> None:
        self._outer = outer

    def members(self) -> Iterator[int]:
        """List them, without the first one, which is bubblewrap's own."""
        first = self._first()
        waiting = [first] if first else []
        while waiting:
            for child in _children(waiting.pop()):
                waiting.append(child)
                yield child

    def usage(self, enough: int) -> Usage:
        """Count by the bubble's own list of processes: none of it can be missing there."""
        first = self._first()
        return _usage((_PROC / str(first) / "root" / "proc") if first else None, None, enough)

    def kill(self) -> bool:
        """End the first one, and so all; bubblewrap itself if there is no bubble yet."""
        return _signal(self._first() or self._outer, signal.SIGKILL)

    def _first(self) -> int:
        return next(iter(_children(self._outer)), 0)


class OfUser:
    """Those of a user that was lent to this run alone."""

    def __init__(self, user: int) -> None:
        self._user = user

    def members(self) -> Iterator[int]:
        """List them."""
        for entry in os.scandir(_PROC):
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and entry.stat().st_uid == self._user and _lives(int(entry.name)):
                    yield int(entry.name)

    def usage(self, enough: int) -> Usage:
        """Count them."""
        return _usage(_PROC, self.members(), enough)

    def kill(self) -> bool:
        """Send it to each; whoever was born meanwhile is there the next time."""
        return _kill_all(self.members())


class OfSession:
    """Those of a session, and those that still have its mark in their environment."""

    def __init__(self, leader: int, mark: str) -> None:
        self._leader, self._mark = leader, f"{MARK}={mark}".encode()

    def members(self) -> Iterator[int]:
        """List them."""
        for entry in os.scandir(_PROC):
            if entry.name.isdigit() and self._is_one(int(entry.name)):
                yield int(entry.name)

    def usage(self, enough: int) -> Usage:
        """Count them."""
        return _usage(_PROC, self.members(), enough)

    def kill(self) -> bool:
        """Send it to each; whoever was born meanwhile is there the next time."""
        return _kill_all(self.members())

    def _is_one(self, pid: int) -> bool:
        with contextlib.suppress(OSError, ValueError, IndexError):
            words = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
            if words[0] in "ZX" or pid == os.getpid():
                return False
            if int(words[3]) == self._leader:
                return True
            return self._mark in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
        return False


def terminate(tree: Tree) -> None:
    """Ask all of a tree to end."""
    for pid in list(tree.members()):
        _signal(pid, signal.SIGTERM)


def _usage(proc: Path | None, pids: Iterable[int] | None, enough: int) -> Usage:
    if proc is None:
        return Usage(0, 0)
    if pids is None:
        pids = []
        with contextlib.suppress(OSError):
            pids = [int(entry.name) for entry in os.scandir(proc) if entry.name.isdigit()]
    found = list(pids)
    count = sum(_threads(proc / str(pid)) for pid in found)
    memory = sum(_resident(proc / str(pid)) for pid in found)
    if memory > enough:
        # What several share was counted for each of them.
        memory = sum(_share(proc / str(pid)) for pid in found)
    return Usage(count, memory)


def _threads(process: Path) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        words = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()
        return 0 if words[0] in "ZX" else int(words[17])
    return 0


def _resident(process: Path) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _share(process: Path) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in (process / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def _children(pid: int) -> list[int]:
    """List the children of all threads of a process."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in (_PROC / str(pid) / "task").iterdir():
            with contextlib.suppress(OSError):
                found += map(int, (thread / "children").read_text().split())
    return found


def _lives(pid: int) -> bool:
    with contextlib.suppress(OSError, IndexError):
        return (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[
            0
        ] not in "ZX"
    return False


def _kill_all(pids: Iterable[int]) -> bool:
    return sum(_signal(pid, signal.SIGKILL) for pid in list(pids)) > 0


def _signal(pid: int, number: signal.Signals) -> bool:
    """Send a signal; tell whether anybody was there."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
