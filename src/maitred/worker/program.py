"""One program in a room: started within the walls, watched, and gone with all that it started.

Whatever it started is gone before this ends: SIGTERM, a while to tidy up, SIGKILL. If the worker is killed,
the bubble goes with it; without one a parent-death signal ends the program, and the undertaker the rest.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from maitred.worker.cgroup import Group
from maitred.worker.files import used
from maitred.worker.jail import Limits
from maitred.worker.output import Printed
from maitred.worker.tree import Tree, terminate

_EVERY = 0.1
_SOON = 0.02
# Bubblewrap's own process is not the program's, and the kernel may count it or not.
_OWN = 2
_SIGNALS: dict[int, str] = {signal.SIGXCPU: "cpu", signal.SIGXFSZ: "file-size"}


class Ended(NamedTuple):
    """How a program ended.

    `exit` is its status, or the negative number of the signal that ended it; `hit` is the limit that it
    reached, and `killed` tells that it was ended for that; `timed_out` that its time was over, `stopped` that
    the caller was cancelled: then nothing more may be run.
    """

    exit: int
    stdout: str = ""
    stderr: str = ""
    hit: str | None = None
    killed: bool = False
    timed_out: bool = False
    stopped: bool = False


class Watch:
    """Looks at what a tree uses, several times a second, and ends it when it is more than is allowed.

    The kernel's limits are per process, or refuse without a word; this one sees all of them together.
    """

    def __init__(self, tree: Tree, limits: Limits, place: Path, group: Group | None) -> None:
        self._tree, self._limits, self._place, self._group = tree, limits, place, group
        self.hit: str | None = None
        self.killed = False

    async def run(self) -> None:
        """Look until the tree is ended or this is cancelled."""
        loop = asyncio.get_running_loop()
        pause = _SOON
        while not self.killed:
            await asyncio.sleep(pause)
            begun = loop.time()
            near, nameless = self._look()
            if nameless + await asyncio.to_thread(used, self._place, self._limits.disk) > self._limits.disk:
                self._end("disk")
            took = loop.time() - begun
            pause = max(_SOON if near else _EVERY, took * 4)

    def _look(self) -> tuple[bool, int]:
        """Count processes and memory; tell whether a limit is near, and the bytes of files without a name."""
        limits = self._limits
        usage = self._tree.usage(limits.processes + _OWN, limits.memory)
        if usage.memory > limits.memory:
            self._end("memory")
        elif usage.processes > limits.processes + _OWN:
            self._end("processes")
        elif usage.processes >= limits.processes:
            # The kernel refuses more; whether the program can do without is its own affair.
            self.hit = self.hit or "processes"
        near = usage.memory > limits.memory // 4 or usage.processes > limits.processes // 2
        return near, usage.nameless

    def _end(self, hit: str) -> None:
        self.hit, self.killed = hit, True
        self._tree.kill()

    def verdict(self, code: int) -> str | None:
        """Tell what was hit, once the program has ended with this status."""
        if not self.killed and self._group and (found := self._group.hit()):
            self.hit = found
        if self.hit is None and code < 0:
            self.hit = _SIGNALS.get(-code)
        return self.hit


async def end_tree(
    process: asyncio.subprocess.Process, tree: Tree, group: Group | None, kill_after: float
) -> None:
    """End what is left of a program and wait until it is gone."""
    if process.returncode is None:
        terminate(tree)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(kill_after):
                await process.wait()
    pause = 0.001
    while True:
        if group:
            group.kill()
        some = tree.kill() if process.returncode is None or not group else False
        if process.returncode is not None and not some and (group is None or group.empty()):
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await process.wait()
                await asyncio.sleep(pause)
        pause = min(pause * 2, 0.05)


async def to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Do this whole, also when whoever waits for it is cancelled meanwhile; so its end is known."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task


async def start(
    argv: list[str], *, cwd: Path, env: dict[str, str], printed: list[Printed], pass_fds: Sequence[int]
) -> asyncio.subprocess.Process:
    """Start a program that prints into these pipes, and read from them."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=cwd,
            env=env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=printed[0].into,
            stderr=printed[-1].into,
            start_new_session=True,
            pass_fds=pass_fds,
        )
    except BaseException:
        for each in printed:
            each.close()
        raise
    finally:
        for each in printed:
            os.close(each.into)
    for each in printed:
        each.listen()
    return process


def signal_name(number: int) -> str:
    """Name a signal; those for programs' own use have numbers only."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def true_exit(code: int, *, in_bubble: bool) -> int:
    """Give a program's own exit: bubblewrap tells a signal as 128 and its number, as shells do."""
    with contextlib.suppress(ValueError):
        if in_bubble and code > 128:
            return -signal.Signals(code - 128)
    return code
