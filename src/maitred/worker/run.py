"""One run of one job, as the worker sees it: a task, its time limit, and why it was stopped if it was."""

import asyncio

from maitred.core.job import Start
from maitred.worker.outcome import ERROR, STOPPED, Outcome, Why, raised, stopped


class Run:
    """A job in hand. It may take `limit` from its start on, which is until `at` by the local clock.

    `code` tells who set that limit, and so why the run is stopped when it is reached.
    """

    __slots__ = ("_asked", "at", "code", "lease", "limit", "start", "task", "why")

    task: "asyncio.Task[Outcome | None]"

    def __init__(self, start: Start, limit: int, code: str, at: float) -> None:
        self.start, self.lease = start, start.lease
        self.limit, self.code, self.at = limit, code, at
        self.why: Why | None = None
        self._asked = False

    def late(self) -> None:
        """Stop it: its time is over."""
        self.stop(Why(self.code, self.limit))

    def stop(self, why: Why) -> None:
        """End the work, and tell why. The first reason holds; one that says nothing gives way to a better."""
        if self.why is None or self.why.code == STOPPED:
            self.why = why
        self.give_up()

    def give_up(self) -> None:
        """Ask the work to end, once: a second time would break into its tidying up."""
        if not self._asked:
            self._asked = True
            self.task.cancel()

    def outcome(self) -> Outcome | None:
        """Give what became of the work once its task is done; None if it never began.

        What was complete before the stop took effect is complete. What fails in being stopped was stopped.
        """
        task = self.task
        ended: Outcome | None
        if task.cancelled():
            ended = raised(asyncio.CancelledError("by the handler itself"))
        else:
            error = task.exception()
            ended = raised(error) if error else task.result()
        if self.why and ended and ended.code in (ERROR, STOPPED):
            return stopped(self.why, ended.result)
        return ended
