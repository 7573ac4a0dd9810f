"""Commands as real processes in one directory."""

import os
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


class House:
    """Commands run in one directory, each ended with the test."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.running: list[subprocess.Popen[str]] = []

    def starts(self, *words: str, **environment: str) -> subprocess.Popen[str]:
        env = {name: value for name, value in os.environ.items() if not name.startswith("MAITRED_")}
        env |= {"PYTHONPATH": str(Path(maitred.__file__).parents[1]), **environment}
        process = subprocess.Popen(
            [sys.executable, "-m", "maitred", *words],
            cwd=self.home,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.running.append(process)
        return process

    def comes_up(self, *words: str) -> tuple[subprocess.Popen[str], str]:
        """Start a server; give it and the address on its line with `ready`."""
        process = self.starts(*words)
        assert process.stdout
        line = process.stdout.readline()
        address = re.search(r"ready.* (http://127\.0\.0\.1:\d+)$", line)
        assert address, (line, process.communicate(timeout=30))
        return process, address[1]

    def stops(self, process: subprocess.Popen[str], with_signal: int = signal.SIGTERM) -> str:
        """Stop it in order; give what it said on its error output."""
        process.send_signal(with_signal)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
        return said
