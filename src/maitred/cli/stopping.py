"""What signals ask of a house: to stop, to be quick about it, to read its settings again.

The first Ctrl-C or SIGTERM stops it in order. The second is for those who cannot wait for running work; more
change nothing. SIGHUP reloads, unless it tells that the terminal is gone: then nobody is there to stop the
house later, so it stops.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import Any, TypeVar

import typer

from maitred.service.per_queue import begin, end

SIGNALS = (signal.SIGINT, signal.SIGTERM)

T = TypeVar("T")


class Stopped(BaseException):
    """A signal to stop came before the house was open. No handler of errors may take it for one."""


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Let a signal end what is begun here, in one sentence, until `Asked` hears signals instead."""

    def stop(*_: object) -> None:
        raise Stopped

    def hang_up(*_: object) -> None:
        """Stop if the terminal is gone. There is nothing to reload: what is read now is new."""
        if had_terminal and not has_terminal():
            raise Stopped

    had_terminal = has_terminal()
    handlers = {**dict.fromkeys(SIGNALS, stop), signal.SIGHUP: hang_up}
    before = [(number, signal.signal(number, handler)) for number, handler in handlers.items()]
    try:
        yield
    except Stopped:
        typer.echo("maitred: stopped before it was ready.", err=True)
    finally:
        for number, handler in before:
            signal.signal(number, handler)


class Asked:
    """What this process was asked for by signals, from now on."""

    def __init__(self) -> None:
        self.to_stop, self.to_hurry, self.to_reload = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._had_terminal = has_terminal()
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._stop)
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)

    def _stop(self) -> None:
        if self.to_stop.is_set():
            self.to_hurry.set()
        self.to_stop.set()

    def _hang_up(self) -> None:
        if self._had_terminal and not has_terminal():
            self.to_stop.set()
        else:
            self.to_reload.set()


@contextlib.asynccontextmanager
async def heeding(
    asked: Asked, reload: Callable[[], Awaitable[None]], *hurry: Callable[[], None]
) -> AsyncIterator[None]:
    """Do what is asked for while the house is open, and while it closes."""

    async def reloading() -> None:
        while True:
            await asked.to_reload.wait()
            asked.to_reload.clear()
            if not asked.to_stop.is_set():
                await reload()

    async def hurrying() -> None:
        await asked.to_hurry.wait()
        for each in hurry:
            each()

    tasks = [begin("reloading", reloading()), begin("hurrying", hurrying())]
    try:
        yield
    finally:
        await end(tasks)


def has_terminal() -> bool:
    """Tell whether this process has a controlling terminal that is still there."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


async def unless(asked: asyncio.Event, opening: Coroutine[Any, Any, T]) -> T:
    """Do what opens the house; raise `Stopped` as soon as it is asked to stop.

    A store that does not answer is given time, and whoever wants to stop should not have to wait for that.
    """
    stopped, opened = asyncio.create_task(asked.wait()), asyncio.create_task(opening)
    try:
        await asyncio.wait([stopped, opened], return_when=asyncio.FIRST_COMPLETED)
        if opened.done():
            return await opened
        raise Stopped
    finally:
        stopped.cancel()
        opened.cancel()
