"""Stops runs that take longer than the time limit.

All runs of a queue have the same limit, so the first to start is the first to be late, and one timer for the
oldest of them is enough: a timer for each would cost more than all else that is done for a short job.
"""

import asyncio
from collections import OrderedDict
from types import TracebackType
from typing import Self


class Watch:
    """A run under a time limit: `async` code in the block is cancelled when it is late.

    Raises `TimeoutError` at the end of the block if that is what ended it.
    """

    __slots__ = ("_deadlines", "at", "late", "task")

    def __init__(self, deadlines: "Deadlines", task: "asyncio.Task[object]", at: float) -> None:
        self._deadlines, self.task, self.at = deadlines, task, at
        self.late = False

    def __enter__(self) -> Self:
        self._deadlines.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._deadlines.drop(self)
        if self.late and self.task.uncancel() == 0 and kind is asyncio.CancelledError:
            raise TimeoutError from None


class Deadlines:
    """The runs of one worker that are under the limit, oldest first."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._watched: OrderedDict[Watch, None] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    def watch(self) -> Watch:
        """Give a watch for the current task, to be entered at once."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("only a task can be watched")
        return Watch(self, task, asyncio.get_running_loop().time() + self._limit)

    def add(self, watch: Watch) -> None:
        """Begin to watch."""
        self._watched[watch] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(watch.at, self._look)

    def drop(self, watch: Watch) -> None:
        """Watch no more; does nothing for one that was late."""
        self._watched.pop(watch, None)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        while self._watched:
            oldest = next(iter(self._watched))
            if oldest.at > loop.time():
                self._timer = loop.call_at(oldest.at, self._look)
                return
            del self._watched[oldest]
            oldest.late = True
            oldest.task.cancel()

    def close(self) -> None:
        """Watch nobody any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._watched.clear()
