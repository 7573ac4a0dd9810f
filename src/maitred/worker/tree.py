"""All processes of one run, whatever they did to get away: found, counted, signalled, ended.

In a bubble they are those of a process namespace, which ends with its first process. Without one they are
those of a user that nobody else has; and where the worker may not choose one, those of the run's session and
those whose environment shows that they come from it.
"""

import contextlib
import os
import re
import signal
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

_PROC = Path("/proc")
MARK = "MAITRED_ROOM"
_CHILD = re.compile(rb'"child-pid"\s*:\s*(\d+)')


class Usage(NamedTuple):
    """What a tree uses: processes with their threads, memory, and files without a name, in bytes."""

    processes: int
    memory: int
    nameless: int


class Tree(Protocol):
    """The processes of one run."""

    def members(self) -> Iterable[int]:
        """List the processes by their numbers here."""

    def usage(self, processes: int, memory: int) -> Usage:
        """Count what is used; where it is more than this much of either, not to the last one."""

    def kill(self) -> bool:
        """Send SIGKILL to all of it; tell whether there was anybody."""


class Bubble:
    """Those in the process namespace that bubblewrap made; `outer` is the process that the worker started.

    Into the file `note` bubblewrap writes which one is the first inside. All others are gone before that one.
    """

    def __init__(self, outer: int, note: int) -> None:
        self._outer, self._note = outer, note
        self._known = 0

    def members(self) -> Iterator[int]:
        """List them, without the first one, which is bubblewrap's own."""
        first = self._first()
        waiting = [first] if first else []
        while waiting:
            for child in _children(waiting.pop()):
                waiting.append(child)
                yield child

    def usage(self, processes: int, memory: int) -> Usage:
        """Count by the bubble's own list of processes: none of it can be missing there."""
        root = _PROC / str(self._first()) / "root"
        with contextlib.suppress(OSError):
            # As long as bubblewrap builds, it sees what the worker sees.
            if not root.samefile("/"):
                return _usage(root / "proc", _numbers(root / "proc"), processes, memory)
        return Usage(0, 0, 0)

    def kill(self) -> bool:
        """End the first one, and so all; bubblewrap itself if there is no bubble yet."""
        first = self._first()
        if not first:
            return _signal(self._outer, signal.SIGKILL)
        return _state(first) not in "ZX" and _is_first(first) and _signal(first, signal.SIGKILL)

    def _first(self) -> int:
        if not self._known and (found := _CHILD.search(os.pread(self._note, 4096, 0))):
            self._known = int(found[1])
        return self._known


class OfUser:
    """Those of a user that was lent to this run alone."""

    def __init__(self, user: int) -> None:
        self._user = user

    def members(self) -> Iterator[int]:
        """List them."""
        return (pid for pid in self.everybody() if _state(pid) not in "ZX")

    def usage(self, processes: int, memory: int) -> Usage:
        """Count them, also those that have ended and that nobody has collected: the kernel does so too."""
        return _usage(_PROC, self.everybody(), processes, memory)

    def kill(self) -> bool:
        """Send it to each; whoever was born meanwhile is there the next time."""
        return _kill_all(self.members())

    def everybody(self) -> Iterator[int]:
        """List them, and those that have ended and that nobody has collected."""
        for pid in _numbers(_PROC):
            with contextlib.suppress(OSError):
                if (_PROC / str(pid)).stat().st_uid == self._user:
                    yield pid


class OfSession:
    """Those of a session, 0 if it is not known, and those that still have its mark in their environment."""

    def __init__(self, leader: int, mark: str) -> None:
        self._leader, self._mark = leader, f"{MARK}={mark}".encode()

    def members(self) -> Iterator[int]:
        """List them, the youngest first."""
        return (pid for pid in reversed(_numbers(_PROC)) if self._is_one(pid))

    def usage(self, processes: int, memory: int) -> Usage:
        """Count them."""
        return _usage(_PROC, self.members(), processes, memory)

    def kill(self) -> bool:
        """Send it to the group at once and to each; whoever was born meanwhile is there the next time."""
        if self._leader:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._leader, signal.SIGKILL)
        return _kill_all(self.members())

    def _is_one(self, pid: int) -> bool:
        with contextlib.suppress(OSError, ValueError, IndexError):
            words = _stat(_PROC / str(pid))
            if words[0] in "ZX" or pid == os.getpid():
                return False
            if self._leader and int(words[3]) == self._leader:
                return True
            return self._mark in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
        return False


def _is_first(pid: int) -> bool:
    """Tell whether a process is the first one of its namespace, and not one that has its number by now."""
    with contextlib.suppress(OSError):
        for line in (_PROC / str(pid) / "status").read_text(errors="replace").splitlines():
            if line.startswith("NSpid:"):
                return line.split()[-1] == "1"
    return False


def terminate(tree: Tree) -> None:
    """Ask all of a tree to end, each group at once: nobody is to see another end first, and tell of it."""
    groups: set[int] = set()
    for pid in tree.members():
        with contextlib.suppress(ProcessLookupError):
            groups.add(os.getpgid(pid))
    for group in groups - {0, os.getpgrp()}:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGTERM)


def threads_of(user: int) -> int:
    """Count the processes and threads of a user here, as the kernel does: until they are collected."""
    return sum(_threads(_PROC / str(pid)) for pid in OfUser(user).everybody())


def _usage(proc: Path, pids: Iterable[int], processes: int, memory: int) -> Usage:
    found: list[Path] = []
    count = resident = 0
    nameless: dict[tuple[int, int], tuple[bool, int]] = {}
    for pid in pids:
        process = proc / str(pid)
        found.append(process)
        count += _threads(process)
        resident += _resident(process)
        nameless |= _nameless(process)
        if count > processes:
            break
    in_memory = sum(size for is_memory, size in nameless.values() if is_memory)
    if resident + in_memory > memory:
        # What several share was counted for each of them.
        resident = sum(map(_share, found))
    on_disk = sum(size for is_memory, size in nameless.values() if not is_memory)
    return Usage(count, resident + in_memory, on_disk)


def _numbers(proc: Path) -> list[int]:
    with os.scandir(proc) as entries:
        return sorted(int(entry.name) for entry in entries if entry.name.isdigit())


def _stat(process: Path) -> list[str]:
    return (process / "stat").read_text(errors="replace").rpartition(")")[2].split()


def _state(pid: int) -> str:
    with contextlib.suppress(OSError, IndexError):
        return _stat(_PROC / str(pid))[0]
    return "X"


def _threads(process: Path) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        return max(1, int(_stat(process)[17]))
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


def _nameless(process: Path) -> dict[tuple[int, int], tuple[bool, int]]:
    """Find open files without a name, which no directory shows: whether each is in memory, and its size."""
    found: dict[tuple[int, int], tuple[bool, int]] = {}
    with contextlib.suppress(OSError), os.scandir(process / "fd") as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                file = entry.stat()
                if stat.S_ISREG(file.st_mode) and not file.st_nlink and file.st_blocks:
                    is_memory = str(Path(entry.path).readlink()).startswith("/memfd:")
                    found[file.st_dev, file.st_ino] = is_memory, file.st_blocks * 512
    return found


def _children(pid: int) -> list[int]:
    """List the children of all threads of a process."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in (_PROC / str(pid) / "task").iterdir():
            with contextlib.suppress(OSError):
                found += map(int, (thread / "children").read_text().split())
    return found


def _kill_all(pids: Iterable[int]) -> bool:
    return sum(_signal(pid, signal.SIGKILL) for pid in list(pids)) > 0


def _signal(pid: int, number: signal.Signals) -> bool:
    """Send a signal; tell whether anybody was there."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
