"""Being asked to stop: by Ctrl-C or SIGTERM, before the house is open and while it is."""

import asyncio
import contextlib
import signal
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

import typer

SIGNALS = (signal.SIGINT, signal.SIGTERM)

T = TypeVar("T")


class Stopped(BaseException):
    """A signal to stop came before the house was open. No handler of errors may take it for one."""


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Let a signal end what is begun here, in one sentence, until `asked_to_stop` hears signals instead."""

    def stop(*_: object) -> None:
        raise Stopped

    before = [(number, signal.signal(number, stop)) for number in SIGNALS]
    try:
        yield
    except Stopped:
        typer.echo("maitred: stopped before it was ready.", err=True)
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def asked_to_stop() -> asyncio.Event:
    """Give an event that a signal to stop sets, from now on."""
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, asked.set)
    return asked


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
