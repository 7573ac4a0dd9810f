"""One run of one job, as the worker sees it: a task, its time limit, and why it was stopped if it was."""

import asyncio
import time
from collections import deque

from maitred.core.job import Start, Typed
from maitred.core.output import Artifact, Part, Stream
from maitred.worker.outcome import ERROR, STOPPED, Outcome, Why, raised, stopped
from maitred.worker.voice import Voice


class Run:
    """A job in hand. It may take `limit` from its start on, which is until `at` by the local clock.

    `code` tells who set that limit, and so why the run is stopped when it is reached. What it says goes to
    `voice`. It has `begun` here at that moment of the local clock.
    """

    __slots__ = (
        "_asked",
        "_awaited",
        "_typed",
        "_voice",
        "at",
        "begun",
        "code",
        "lease",
        "limit",
        "start",
        "task",
        "why",
    )

    task: "asyncio.Task[Outcome | None]"

    def __init__(self, start: Start, limit: int, code: str, at: float, voice: Voice) -> None:
        self.start, self.lease = start, start.lease
        self.limit, self.code, self.at = limit, code, at
        self.begun = time.monotonic()
        self.why: Why | None = None
        self._asked = False
        self._voice = voice
        self._typed: deque[Typed] | None = None
        self._awaited: asyncio.Future[None] | None = None

    @property
    def name(self) -> str:
        """A name of its lease for people: the job's record and the attempt, and nothing of the token."""
        return f"{self.lease.record}.{self.start.attempt}"

    def say(self, stream: Stream, data: bytes, cut: int = 0) -> None:
        """Say something to whoever watches the job; `cut` bytes before it were left out."""
        self._voice.say(self.lease, Part(stream, data, cut))

    async def keep(self, artifacts: list[Artifact]) -> None:
        """Keep files that the job made."""
        await self._voice.keep(self.lease, artifacts)

    def type_in(self, typed: Typed) -> None:
        """Take in what somebody typed for this run."""
        self._queue_of_typed().append(typed)
        if self._awaited and not self._awaited.done():
            self._awaited.set_result(None)

    async def typed(self) -> Typed:
        """Wait for what is typed next; only one may wait."""
        typed = self._queue_of_typed()
        while not typed:
            self._awaited = asyncio.get_running_loop().create_future()
            await self._awaited
        return typed.popleft()

    def _queue_of_typed(self) -> "deque[Typed]":
        """Give what was typed and not taken; nobody types for most runs."""
        if self._typed is None:
            self._typed = deque()
        return self._typed

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
