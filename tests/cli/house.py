"""Commands as real processes in one directory."""

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import maitred

APP = """
import maitred

q = maitred.Queue("default")

@q.handler("double")
async def double(n):
    return {"twice": 2 * n}
"""

CONFIG = """
[queues.default]
grace = "2s"
"""


# Programs that are to see what a test does must not be behind walls.
TRUSTING = {"MAITRED_WORKER__ISOLATE": "false"}


class House:
    """Commands run in one directory, each ended with the test."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.running: list[subprocess.Popen[str]] = []

    def starts(
        self, *words: str, screen: int | None = None, only_errors: bool = False, **environment: str
    ) -> subprocess.Popen[str]:
        """Start a command; what it prints goes to a screen, or only its errors, or to us."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("MAITRED_")}
        env |= {"PYTHONPATH": str(Path(maitred.__file__).parents[1]), **environment}
        process = subprocess.Popen(
            [sys.executable, "-m", "maitred", *words],
            cwd=self.home,
            env=env,
            stdout=subprocess.PIPE if screen is None or only_errors else screen,
            stderr=subprocess.PIPE if screen is None else screen,
            text=True,
        )
        self.running.append(process)
        return process

    def shows(self, *words: str, only_errors: bool = False) -> "tuple[subprocess.Popen[str], Screen]":
        """Start a command on a terminal of 120 by 30."""
        ours, theirs = pty.openpty()
        size = {"COLUMNS": "120", "LINES": "30", "TERM": "xterm"}
        process = self.starts(*words, screen=theirs, only_errors=only_errors, **size)
        os.close(theirs)
        return process, Screen(ours)

    def comes_up(self, *words: str, **environment: str) -> tuple[subprocess.Popen[str], str]:
        """Start a server; give it and the address on its line with `ready`."""
        process = self.starts(*words, screen=None, only_errors=False, **environment)
        assert process.stdout
        line = next((line for line in process.stdout if "ready" in line), "")
        address = re.search(r"ready.* (http://127\.0\.0\.1:\d+)$", line)
        assert address, (line, process.communicate(timeout=30))
        return process, address[1]

    def says(self, *words: str) -> str:
        """Run a command to its end; give what it printed."""
        process = self.starts(*words)
        shown, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
        return shown

    def stops(self, process: subprocess.Popen[str], with_signal: int = signal.SIGTERM) -> str:
        """Stop it in order; give what it said on its error output."""
        process.send_signal(with_signal)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
        return said


class Screen:
    """What a command draws on a terminal."""

    def __init__(self, terminal: int) -> None:
        self._terminal = os.fdopen(terminal, "rb", buffering=0)

    def until(self, pattern: str) -> str:
        """Read on until a pattern was drawn; give all that was drawn since the last time."""
        seen = b""
        while not re.search(pattern.encode(), seen, re.DOTALL):
            seen += self._terminal.read(65536)
        return seen.decode(errors="replace")

    def close(self) -> None:
        """Switch it off."""
        self._terminal.close()
