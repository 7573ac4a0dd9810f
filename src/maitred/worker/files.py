"""The files of a room: laid out before programs run, measured while they do, kept afterwards.

What programs leave behind is not trusted: no link is followed on the way to a file that is kept.
"""

import contextlib
import errno
import mimetypes
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from maitred.core.output import Artifact

_OTHER = "application/octet-stream"
_MOST_ENTRIES = 200_000
_STEP = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def lay_out(home: Path, files: Mapping[str, bytes], user: int) -> None:
    """Write a job's files, as that user's if there is one; their names were checked when it was submitted."""
    for name, content in files.items():
        path = home / name
        for above in reversed(path.relative_to(home).parents):
            if not (home / above).is_dir():
                (home / above).mkdir()
                hand_over(home / above, user)
        path.write_bytes(content)
        hand_over(path, user)


def hand_over(path: Path, user: int) -> None:
    """Give a file or directory to a user, if there is one."""
    if user:
        os.chown(path, user, user)


def collect(
    home: Path, names: Iterable[str], limit: int, owner: int
) -> tuple[list[Artifact], dict[str, str]]:
    """Give the files that were asked for, together at most so many bytes, and why others cannot be had."""
    kept: list[Artifact] = []
    refused: dict[str, str] = {}
    for name in dict.fromkeys(names):
        try:
            content = _read(home, name, limit, owner)
        except _Refused as why:
            refused[name] = str(why)
        else:
            limit -= len(content)
            kept.append(Artifact(name, mimetypes.guess_type(name, strict=False)[0] or _OTHER, content))
    return kept, refused


_WHY = {
    errno.ELOOP: "it is a link, and links are not followed",
    errno.ENOTDIR: "its directory is a link, or not a directory",
    errno.ENXIO: "it is not a file",
}


class _Refused(Exception):
    """Why a file is not kept."""


def _read(home: Path, name: str, limit: int, owner: int) -> bytes:
    try:
        file = _opened(home, name)
    except FileNotFoundError:
        raise _Refused("it is not there") from None
    except OSError as error:
        raise _Refused(_WHY.get(error.errno or 0) or f"it cannot be opened: {error.strerror}") from None
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise _Refused("it is not a file")
        if found.st_uid != owner:
            raise _Refused("it belongs to somebody else")
        if found.st_size > limit:
            raise _Refused(f"it has {found.st_size} bytes, of which {limit} are left to keep")
        with open(file, "rb", closefd=False) as opened:
            return opened.read(limit)
    finally:
        os.close(file)


def _opened(home: Path, name: str) -> int:
    """Open a file step by step, so that no link on the way is followed."""
    *above, last = name.split("/")
    here = os.open(home, _STEP)
    try:
        for part in above:
            there = os.open(part, _STEP, dir_fd=here)
            os.close(here)
            here = there
        return os.open(last, _FILE, dir_fd=here)
    finally:
        os.close(here)


def used(place: Path, enough: int) -> int:
    """Count the bytes on disk below a directory; more entries than anybody needs count as too much."""
    total, entries, waiting = 0, 0, [str(place)]
    while waiting and total <= enough:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as found:
            for entry in found:
                entries += 1
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                if entries > _MOST_ENTRIES:
                    return enough + 1
    return total
