"""Clears up after a worker that was killed: ends what its programs started and removes their directories.

A parent-death signal reaches a program but none of the processes that it started. So one process beside the
worker waits at the other end of a pipe, where the worker notes what it begins and what it has cleared up
itself. When the worker is gone, however it went, the pipe ends. Run as a script it is that process; it loads
nothing but the standard library and two files beside it, so it starts in milliseconds.
"""

import contextlib
import os
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, BinaryIO

TRIES = 200


class Undertaker:
    """The worker's side: started with the first program, ended by `close`."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def expect(self, place: Path, leader: int = 0, user: int = 0) -> None:
        """Note a room's directory, the user that is its own, and, once there is one, its program."""
        self._note(leader, user, place)

    def forget(self, place: Path) -> None:
        """Note that nothing is left of a room."""
        self._note(-1, 0, place)

    def close(self) -> None:
        """Let it end, after it has cleared up what was not forgotten."""
        if self._process is not None:
            process, self._process = self._process, None
            with contextlib.suppress(OSError):
                process.communicate()

    def _note(self, leader: int, user: int, place: Path) -> None:
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
                os.write(pipe.fileno(), f"{leader} {user} {os.fsencode(place).hex()}\n".encode())


def clear_up(notes: BinaryIO) -> None:
    """Read notes to their end, then clear up what is left."""
    left: dict[bytes, tuple[int, int]] = {}
    for line in notes:
        leader, user, place = line.split()
        if int(leader) < 0:
            left.pop(place, None)
        else:
            left[place] = int(leader), int(user)
    for written, (leader_left, user_left) in left.items():
        place_left = Path(os.fsdecode(bytes.fromhex(written.decode())))
        _end(leader_left, user_left, place_left.name)
        _beside("removal")["remove"](place_left)


def _end(leader: int, user: int, mark: str) -> None:
    trees = _beside("tree")
    if leader:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, signal.SIGKILL)
    # A worker that is killed while it starts a program has not noted who leads; the mark tells all the same.
    tree = trees["OfUser"](user) if user else trees["OfSession"](leader, mark)
    for _ in range(TRIES):
        if not tree.kill():
            return
        time.sleep(0.01)


def _beside(name: str) -> dict[str, Any]:
    """Load a file of this package without the package."""
    return runpy.run_path(str(Path(__file__).with_name(f"{name}.py")))


if __name__ == "__main__":
    clear_up(sys.stdin.buffer)
