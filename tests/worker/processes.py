"""Looking at processes from outside."""

import contextlib
import os
import secrets
from pathlib import Path


def alive(pid: int) -> bool:
    """Tell whether a process runs."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        os.kill(pid, 0)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def has_members(group: int) -> bool:
    """Tell whether a process group has a member that is not just a zombie nobody collected."""
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, member_of = entry.read_text().rpartition(")")[2].split()[:3]
            if int(member_of) == group and state not in "ZX":
                return True
    return False


def unlikely_nap() -> str:
    """Give a time to sleep that nobody else sleeps for."""
    return f"300.{secrets.randbits(60)}"


def running(nap: str) -> bool:
    """Tell whether anybody sleeps for that time."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if entry.read_bytes().split(b"\0")[:2] == [b"sleep", nap.encode()]:
                return True
    return False
