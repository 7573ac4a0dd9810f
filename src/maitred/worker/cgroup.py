"""The kernel's group of one room, where the host has cgroups: bounds for all of its processes together."""

import contextlib
import secrets
from pathlib import Path

from maitred.worker.jail import Limits


class Group:
    """A group with limits: programs start in it, it tells what was hit, and ends them in one step."""

    def __init__(self, above: Path, limits: Limits) -> None:
        self.path = above / f"maitred-job-{secrets.token_hex(8)}"
        self.path.mkdir()
        self._write("pids.max", limits.processes)
        self._write("memory.max", limits.memory)
        with contextlib.suppress(OSError):
            self._write("memory.swap.max", 0)
        with contextlib.suppress(OSError):
            self._write("memory.oom.group", 1)

    def around(self, argv: list[str]) -> list[str]:
        """Give the arguments that start a program in this group: a shell enters, and becomes the program."""
        return ["/bin/sh", "-c", 'echo 0 >"$0/cgroup.procs" && exec "$@"', str(self.path), *argv]

    def hit(self) -> str | None:
        """Tell which limit was reached so far."""
        if self._count("memory.events", "oom_kill"):
            return "memory"
        return "processes" if self._count("pids.events", "max") else None

    def kill(self) -> None:
        """End all of its processes."""
        with contextlib.suppress(OSError):
            self._write("cgroup.kill", 1)

    def empty(self) -> bool:
        """Tell whether no process is left in it."""
        return not self._count("cgroup.events", "populated")

    def close(self) -> None:
        """Remove it; it has to be empty."""
        with contextlib.suppress(OSError):
            self.path.rmdir()

    def _write(self, name: str, value: int) -> None:
        (self.path / name).write_text(str(value))

    def _count(self, name: str, event: str) -> int:
        with contextlib.suppress(OSError):
            for line in (self.path / name).read_text().splitlines():
                key, _, value = line.partition(" ")
                if key == event:
                    return int(value)
        return 0
