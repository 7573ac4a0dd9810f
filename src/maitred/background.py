"""A loop in a thread of its own, for programs that have none: what blocks there runs here.

The thread is started at first use, serves the whole process and all its threads, and does not keep it alive.
A process that was forked starts its own. What has coroutines as methods gets a sync face by `Blocking`, each
method made from the one that it has: with its arguments, its answer and its errors.
"""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from functools import cache, wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
A_co = TypeVar("A_co", covariant=True)


# Whoever makes a loop, or what belongs to it, has this: threads that ask at the same time get the same one.
_making = threading.RLock()


@cache
def _made() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="maitred-sync", daemon=True).start()
    return loop


def _loop() -> asyncio.AbstractEventLoop:
    with _making:
        return _made()


def _begin_anew() -> None:
    _made.cache_clear()
    _making.release()


os.register_at_fork(before=_making.acquire, after_in_parent=_making.release, after_in_child=_begin_anew)


class Blocking(Generic[A_co]):
    """The sync face of what `make` gives, which is made anew in a child that was forked."""

    def __init__(self, make: Callable[[], A_co]) -> None:
        self._make = make
        self._on: tuple[asyncio.AbstractEventLoop, A_co] | None = None

    def face(self) -> A_co:
        """Give what has the coroutines; its connections belong to the loop of this process."""
        with _making:
            if self._on is None or self._on[0] is not _loop():
                self._on = (_loop(), self._make())
            return self._on[1]

    def forget(self) -> None:
        """Make it anew at the next call."""
        self._on = None


def blocking(
    method: Callable[Concatenate[A_co, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Blocking[A_co], P], T]:
    """Make a method that blocks of one that is awaited."""

    @wraps(method)
    def call(self: Blocking[A_co], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return wait_for(method(self.face(), *args, **kwargs))

    return call


def iterating(
    method: Callable[Concatenate[A_co, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate[Blocking[A_co], P], Generator[T, None, None]]:
    """Make a method that gives a plain iterator of one that gives an async one; close it to leave it."""

    @wraps(method)
    def call(self: Blocking[A_co], /, *args: P.args, **kwargs: P.kwargs) -> Generator[T, None, None]:
        items, turn = method(self.face(), *args, **kwargs), asyncio.Lock()
        try:
            while more := wait_for(_next(items, turn)):
                yield from more
        finally:
            wait_for(_close(items, turn))

    return call


def wait_for(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine there and wait for what it gives; whoever is interrupted interrupts it."""
    future = asyncio.run_coroutine_threadsafe(coroutine, _loop())
    try:
        return future.result()
    finally:
        future.cancel()


async def _next(items: AsyncGenerator[T, None], turn: asyncio.Lock) -> list[T]:
    """Give the next item; nothing at the end."""
    async with turn:
        async for item in items:
            return [item]
        return []


async def _close(items: AsyncGenerator[T, None], turn: asyncio.Lock) -> None:
    """Leave it; one that was interrupted has to come to its end first."""
    async with turn:
        await items.aclose()
