"""`maitred shell`: a terminal here for a program on a worker.

The keys go there as they are, so that Ctrl-C interrupts the program and not this command. The terminal is put
back as it was, however this ends.
"""

import asyncio
import contextlib
import os
import signal
import sys
import termios
import threading
import tty
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import typer

from maitred.cli.calling import Server, find_key
from maitred.cli.exits import INTERRUPTED
from maitred.cli.printing import plain
from maitred.cli.spans import span
from maitred.client.session import Session

# A shell that everybody has, better if there is a better one.
SHELL = ["sh", "-c", "command -v bash >/dev/null && exec bash -i; exec sh -i"]
_CHUNK = 1 << 16
_CTRL_C, _CTRL_D = b"\x03", b"\x04"
_SENTENCES = {
    "idle": "nobody had typed for too long",
    "time-limit": "its time was over",
    "halted": "a waiting job needed its slot, or its worker was stopped",
    "abandoned": "nobody came back to it",
    "cancelled": "it was cancelled",
    "deleted": "it was deleted",
}


def open_shell(at: Server, queue: str, frame: Mapping[str, Any]) -> int:
    """Hold a session to its end; give the exit status of its program."""
    session = Session(at.address, queue, key=find_key())
    return asyncio.run(_Shell(session).run(frame))


class _Shell:
    """One session on this terminal."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._raw = False
        self._left = asyncio.Event()

    async def run(self, frame: Mapping[str, Any]) -> int:
        """Hold the session until it ends, or this is told to end."""
        size = _size()
        await self._session.open({**frame, "terminal": size} if size else frame)
        with _keys_as_they_are() as self._raw:
            return await self._hold()

    async def _hold(self) -> int:
        loop = asyncio.get_running_loop()
        if self._raw:
            loop.add_signal_handler(signal.SIGWINCH, lambda: loop.create_task(self._resize()))
            await self._resize()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._left.set)
        _read_keys(loop, self._typed)
        showing, leaving = asyncio.create_task(self._show()), asyncio.create_task(self._left.wait())
        try:
            await asyncio.wait([showing, leaving], return_when=asyncio.FIRST_COMPLETED)
            return showing.result() if showing.done() else INTERRUPTED
        finally:
            for task in (showing, leaving):
                task.cancel()
            await asyncio.gather(showing, leaving, return_exceptions=True)
            await self._session.close()

    async def _show(self) -> int:
        async with contextlib.aclosing(self._session.told()) as told:
            async for word in told:
                if isinstance(word, bytes):
                    await asyncio.to_thread(_write, word)
                elif word["status"] == "ended":
                    return self._end(word)
                else:
                    self._tell(word)
        return 1

    def _tell(self, word: Mapping[str, Any]) -> None:
        match word["status"]:
            case "halting":
                self._say(f"this session ends in {span(word['seconds'])}: {word['reason']}")
            case "cut":
                self._say(f"{word['bytes']} bytes that were shown meanwhile are lost")
            case "dropped":
                self._say("the connection broke; trying to come back (Ctrl-C to leave)")
            case "resumed":
                self._say("connected again")

    def _end(self, word: Mapping[str, Any]) -> int:
        """Say why a session ended, unless it did by itself; give the exit status."""
        code, status = word["code"], word["exit"]
        if code not in (None, "exit"):
            self._say(f"the session has ended ({code}): {_SENTENCES.get(code, 'see `maitred show`')}")
        if not status:
            return 0 if code is None else 1
        return int(status) if status > 0 else 128 - int(status)

    def _say(self, sentence: str) -> None:
        before, after = ("\r\n", "\r\n") if self._raw else ("", "\n")
        typer.echo(f"{before}maitred: {plain(sentence)}{after}", err=True, nl=False)

    async def _typed(self, data: bytes) -> None:
        """Pass on what was typed; nothing more comes after no bytes."""
        if not self._session.connected and _CTRL_C in data:
            self._left.set()
        await self._session.type_in(data or _CTRL_D)

    async def _resize(self) -> None:
        if size := _size():
            await self._session.resize(size)


@contextlib.contextmanager
def _keys_as_they_are() -> Iterator[bool]:
    """Let this terminal pass on each key; tell whether there is one."""
    keys = sys.stdin.fileno()
    if not os.isatty(keys):
        yield False
        return
    before = termios.tcgetattr(keys)
    # What was typed ahead is kept.
    tty.setraw(keys, termios.TCSADRAIN)
    try:
        yield True
    finally:
        termios.tcsetattr(keys, termios.TCSADRAIN, before)


def _read_keys(loop: asyncio.AbstractEventLoop, typed: Callable[[bytes], Any]) -> None:
    """Read what is typed, in a thread, as fast as it is passed on."""
    keys = sys.stdin.fileno()

    def read() -> None:
        with contextlib.suppress(OSError, RuntimeError, asyncio.CancelledError):
            while True:
                data = os.read(keys, _CHUNK)
                asyncio.run_coroutine_threadsafe(typed(data), loop).result()
                if not data:
                    return

    threading.Thread(target=read, daemon=True).start()


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _size() -> tuple[int, int] | None:
    """Give the columns and rows of this terminal; None if there is none."""
    try:
        size = os.get_terminal_size(sys.stdin.fileno())
    except OSError:
        return None
    return (size.columns, size.lines) if size.columns and size.lines else None
