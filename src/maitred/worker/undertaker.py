"""Clears up after a worker that was killed: ends its programs' groups and removes their directories.

A parent-death signal reaches a program but none of the processes that it started. So one process beside the
worker waits at the other end of a pipe, where the worker notes what it begins and what it has cleared up
itself. When the worker is gone, however it went, the pipe ends. Run as a script it is that process; it
imports nothing but the standard library, so it starts in milliseconds.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO


class Undertaker:
    """The worker's side: started with the first program, ended by `close`."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def expect(self, home: Path, group: int = 0) -> None:
        """Note a program's directory and, once there is one, its group."""
        self._note(group, home)

    def forget(self, home: Path) -> None:
        """Note that nothing is left of a program."""
        self._note(-1, home)

    def close(self) -> None:
        """Let it end, after it has cleared up what was not forgotten."""
        if self._process is not None:
            process, self._process = self._process, None
            with contextlib.suppress(OSError):
                process.communicate()

    def _note(self, group: int, home: Path) -> None:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        pipe = self._process.stdin
        if pipe is not None:
            # Without it the programs run as well; they are then only less well looked after.
            with contextlib.suppress(OSError):
                os.write(pipe.fileno(), f"{group} {os.fsencode(home).hex()}\n".encode())


def clear_up(notes: BinaryIO) -> None:
    """Read notes to their end, then clear up what is left."""
    left: dict[bytes, int] = {}
    for line in notes:
        group, home = line.split()
        if int(group) < 0:
            left.pop(home, None)
        else:
            left[home] = int(group)
    for group_left in left.values():
        if group_left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group_left, signal.SIGKILL)
    for home in left:
        shutil.rmtree(os.fsdecode(bytes.fromhex(home.decode())), ignore_errors=True)


if __name__ == "__main__":
    clear_up(sys.stdin.buffer)
