"""Threads for handlers that block: they are kept for the next job, and never keep the process alive.

The standard pool waits for its threads when the process ends; a handler that hangs would then hang the stop.
"""

import asyncio
import contextvars
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any

_Call = tuple[contextvars.Context, Callable[[], Any], asyncio.AbstractEventLoop, "asyncio.Future[Any]"]


class Threads:
    """As many threads as calls have been under way at once."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[_Call] = SimpleQueue()
        self._idle = 0

    def call(self, function: Callable[[], Any]) -> "asyncio.Future[Any]":
        """Run the function in a thread, with the caller's context; must be called from a running loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        if self._idle:
            self._idle -= 1
        else:
            Thread(target=self._work, name="maitred-handler", daemon=True).start()
        future.add_done_callback(lambda _: None)
        self._calls.put((contextvars.copy_context(), function, loop, future))
        return future

    def _work(self) -> None:
        while True:
            context, function, loop, future = self._calls.get()
            value: Any = None
            failure: BaseException | None = None
            try:
                value = context.run(function)
            except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its job's outcome
                failure = error
            try:
                loop.call_soon_threadsafe(self._done, future, value, failure)
            except RuntimeError:
                return

    def _done(self, future: "asyncio.Future[Any]", value: Any, failure: BaseException | None) -> None:
        self._idle += 1
        if future.cancelled():
            return
        if failure is None:
            future.set_result(value)
        elif isinstance(failure, StopIteration):
            future.set_exception(RuntimeError("the handler raised StopIteration"))
        else:
            future.set_exception(failure)
