"""Removing a directory, whatever programs left in it: any depth, any names, any permissions.

It imports nothing but the standard library: the undertaker loads it without the rest.
"""

import contextlib
import os
import stat
from pathlib import Path

_STEP = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove(place: Path) -> None:
    """Remove a directory and all below it. Each directory in it is first brought to the top.

    So there is no depth that is too deep, neither for this program nor for the kernel's longest path.
    """
    with contextlib.suppress(OSError):
        top = os.open(place, _STEP)
        try:
            _remove_below(top)
        finally:
            os.close(top)
        place.rmdir()


def _remove_below(top: int) -> None:
    count = 0
    waiting = _clear(top, top, count)
    while waiting:
        name = waiting.pop()
        with contextlib.suppress(OSError):
            here = os.open(name, _STEP, dir_fd=top)
            try:
                found = _clear(here, top, count)
            finally:
                os.close(here)
            waiting += found
            count += len(found)
            os.rmdir(name, dir_fd=top)


def _clear(here: int, top: int, count: int) -> list[bytes]:
    """Remove the files of a directory and move its directories to the top; give their names there."""
    moved = []
    for name in map(os.fsencode, os.listdir(here)):
        with contextlib.suppress(OSError):
            if not stat.S_ISDIR(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=here)
                continue
            os.chmod(name, 0o700, dir_fd=here)
            if here == top:
                moved.append(name)
                continue
            there = b".\nmoved-%d" % (count + len(moved))
            os.rename(name, there, src_dir_fd=here, dst_dir_fd=top)
            moved.append(there)
    return moved
