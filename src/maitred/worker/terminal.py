"""A program on a pseudo-terminal: what is typed goes in, what it shows comes out, its window has a size."""

import asyncio
import contextlib
import fcntl
import os
import pty
import struct
import termios
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from maitred.worker.cgroup import Group
from maitred.worker.output import OnOutput
from maitred.worker.program import Ended, Watch, end_tree, to_its_end, true_exit
from maitred.worker.tree import Tree

_CHUNK = 1 << 16


class Tended(NamedTuple):
    """What is needed to end a program with all that it started; `done` is called when that is so."""

    tree: Tree
    watch: Watch
    group: Group | None
    kill_after: float
    in_bubble: bool
    done: Callable[[], None]


class Terminal:
    """A program that runs on a terminal. `wait` for its end, once; cancelling that stops it.

    `on_taken` is called when the program has taken some of what was typed.
    """

    def __init__(
        self, process: asyncio.subprocess.Process, master: int, on_output: OnOutput, tended: Tended
    ) -> None:
        self.pid = process.pid
        self._process, self._master, self._heard, self._tended = process, master, on_output, tended
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        self._typed = bytearray()
        self.on_taken: Callable[[], None] = lambda: None
        self._reading = self._last = False
        self.read_on(True)
        self._watching = asyncio.ensure_future(tended.watch.run())

    def write(self, data: bytes) -> None:
        """Type; it waits here while the program does not read."""
        if not self._over.is_set():
            self._typed += data
            self._send()

    @property
    def unread(self) -> int:
        """How many bytes were typed that the program has not taken yet."""
        return len(self._typed)

    def read_on(self, go_on: bool) -> None:
        """Read what the program shows, or let it wait when its terminal is full."""
        if go_on != self._reading and not self._over.is_set() and (go_on or not self._last):
            self._reading = go_on
            if go_on:
                self._loop.add_reader(self._master, self._read)
            else:
                self._loop.remove_reader(self._master)

    def resize(self, columns: int, rows: int) -> None:
        """Give the window another size; the program hears of it."""
        if not self._over.is_set():
            _set_size(self._master, columns, rows)

    async def wait(self, limit: float | None = None) -> Ended:
        """Wait for the end; after `limit` seconds, or when cancelled, the program is stopped."""
        stopped = timed_out = False
        try:
            async with asyncio.timeout(limit):
                await self._process.wait()
        except asyncio.CancelledError:
            stopped = self._process.returncode is None
        except TimeoutError:
            timed_out = self._process.returncode is None
        finally:
            self._watching.cancel()
            await to_its_end(self._end())
        watch = self._tended.watch
        code = true_exit(self._process.returncode or 0, in_bubble=self._tended.in_bubble)
        hit = watch.verdict(code)
        return Ended(code, hit=hit, killed=watch.killed, timed_out=timed_out, stopped=stopped)

    async def _end(self) -> None:
        tended = self._tended
        await end_tree(self._process, tended.tree, tended.group, tended.kill_after)
        tended.done()
        # What is left is no more than a terminal holds, and is read whatever others wait for.
        self._last = True
        self.read_on(True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await self._over.wait()
        self._close()

    def _read(self) -> None:
        try:
            data = os.read(self._master, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            # The last one who had the terminal open is gone.
            data = b""
        if data:
            self._heard("tty", data)
        else:
            self._close()

    def _send(self) -> None:
        with contextlib.suppress(BlockingIOError, OSError):
            del self._typed[: os.write(self._master, self._typed)]
            self.on_taken()
        if self._typed and not self._over.is_set():
            self._loop.add_writer(self._master, self._send)
        else:
            self._loop.remove_writer(self._master)

    def _close(self) -> None:
        if not self._over.is_set():
            self._over.set()
            self._loop.remove_reader(self._master)
            self._loop.remove_writer(self._master)
            os.close(self._master)


async def open_terminal(
    argv: list[str],
    *,
    cwd: Path,
    env: dict[str, str],
    size: tuple[int, int],
    on_output: OnOutput,
    tend: Callable[[int], Tended],
    pass_fds: Sequence[int],
) -> Terminal:
    """Start a program on a new terminal."""
    master, slave = pty.openpty()
    try:
        _set_size(slave, *size)
        os.set_blocking(master, False)
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=cwd,
            env=env,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            pass_fds=pass_fds,
        )
    except BaseException:
        os.close(master)
        raise
    finally:
        os.close(slave)
    return Terminal(process, master, on_output, tend(process.pid))


def _set_size(terminal: int, columns: int, rows: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
