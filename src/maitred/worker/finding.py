"""Finds the program of a command before it is started, with the eyes of the room that it will run in.

Behind the walls it is a wrapper that fails to start it, and all that is left is a line of that wrapper's. So
what can be known before is looked at before, and told in a sentence that names the program.
"""

import os
import stat
from collections import deque
from pathlib import Path, PurePosixPath

from maitred.worker.jail import HOME, SEEN, Walls

_MOST_LINKS = 40
_EXECUTABLE = 0o111
_BEGINNING = 256


def expect_program(walls: Walls, name: str, cwd: str) -> None:
    """Raise OSError with a sentence if this program cannot be started in that directory of the room."""
    here = PurePosixPath(HOME if walls.host.bwrap else walls.home, cwd)
    if "/" in name:
        _expect_file(walls, here / name, name)
        return
    for place in walls.environment().get("PATH", os.defpath).split(":"):
        found = _find(walls, here / place / name)
        if name and found and _may_be_run(found):
            return
    raise FileNotFoundError(f"there is no program {name!r}")


def _expect_file(walls: Walls, path: PurePosixPath, name: str) -> None:
    found = _find(walls, path)
    if not found or not _is_there(found):
        raise FileNotFoundError(f"there is no program {name!r}")
    about = found.stat()
    if not stat.S_ISREG(about.st_mode):
        raise PermissionError(f"{name!r} is not a file that could be run")
    if not about.st_mode & _EXECUTABLE:
        raise PermissionError(f"{name!r} is not executable; name what runs it, as in `sh {name}`")
    if not walls.user or about.st_uid == walls.user or about.st_mode & stat.S_IROTH:
        _expect_format(walls, found, name)


def _expect_format(walls: Walls, found: Path, name: str) -> None:
    """Look at how a file begins: a script names the program that reads it; text that names none is none."""
    with found.open("rb", buffering=0) as file:
        beginning = file.read(_BEGINNING)
    if beginning[:2] == b"#!":
        words = os.fsdecode(beginning[2:].partition(b"\n")[0]).split(maxsplit=1)
        reader = words[0] if words else ""
        seen = _find(walls, PurePosixPath(reader)) if reader.startswith("/") else None
        if not seen or not _is_there(seen):
            raise FileNotFoundError(f"{name!r} is to be run by {reader!r}, and there is no such program")
    elif b"\0" not in beginning:
        raise OSError(f"{name!r} is neither a program nor a script, which would begin with `#!`")


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _may_be_run(path: Path) -> bool:
    try:
        return path.is_file() and bool(path.stat().st_mode & _EXECUTABLE)
    except OSError:
        return False


def _find(walls: Walls, path: PurePosixPath) -> Path | None:
    """Give where on the host a path of the room is, whether something is there or not; None if it is hidden.

    Links lead where they lead in there.
    """
    if not walls.host.bwrap:
        return Path(path)
    moved = {HOME: walls.home, "/tmp": walls.place / "tmp"}  # noqa: S108 - the room's own

    def on_host(path: PurePosixPath) -> Path:
        for inside, outside in moved.items():
            if path.is_relative_to(inside):
                return outside / path.relative_to(inside)
        return Path(path)

    left, at, links = deque(path.parts), PurePosixPath("/"), 0
    while left:
        part = left.popleft()
        there = at.parent if part == ".." else at / part
        try:
            target = PurePosixPath(on_host(there).readlink())
        except OSError:
            at = there
            continue
        links += 1
        if links > _MOST_LINKS:
            return None
        left.extendleft(reversed(target.parts))
    seen = any(at.is_relative_to(place) for place in (*moved, *SEEN, *walls.visible))
    return on_host(at) if seen else None
