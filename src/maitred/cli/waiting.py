"""Following a job to its end: its place is told as it changes, and its own exit status is the command's.

The server tells what happens; nobody asks again and again. A connection that is lost is made anew and goes on
where it was.
"""

import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from maitred.cli.printing import say
from maitred.cli.spans import span, starts
from maitred.client import Client
from maitred.errors import UnknownJob
from maitred.wire import Estimate, JobDocument, PlaceEvent, Reason, StateEvent, WatchEvent

INTERRUPTED = 130


class Progress:
    """Where a job is, as the events tell it: what can be said of that, now and a while later."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.phase: str | None = None
        self.position: int | None = None
        self.reason: Reason | None = None
        self.estimate: Estimate | None = None
        self.worker: str | None = None
        self.granted: float | None = None
        self._since = time.monotonic()

    def follow(self, event: WatchEvent) -> bool:
        """Hear of an event; tell whether it is worth a line, and not only another estimate."""
        before = self._place()
        if isinstance(event, StateEvent):
            if event.phase != self.phase or event.worker != self.worker:
                self._since = time.monotonic()
            self.phase, self.worker, self.granted = event.phase, event.worker, event.duration
        elif isinstance(event, PlaceEvent):
            self.phase, self.position = "waiting", event.position
            self.reason, self.estimate = event.waiting_for, event.estimate
            self._since = time.monotonic()
        return self._place() != before and (self.phase != "waiting" or isinstance(event, PlaceEvent))

    def started(self, elapsed: float) -> None:
        """Hear that the job had been running for so long when it was first seen."""
        self._since = time.monotonic() - max(0.0, elapsed)

    @property
    def passed(self) -> float:
        """The seconds since what is known was told, or since the job started."""
        return time.monotonic() - self._since

    def sentence(self, *, running_time: bool = False) -> str | None:
        """Say where the job is; None if there is nothing to say."""
        if self.phase == "running":
            granted = f", up to {span(self.granted)}" if self.granted else ""
            elapsed = f" for {span(self.passed)}" if running_time else ""
            return f"{self.id} runs{elapsed}{granted}."
        if self.phase == "waiting":
            reason = f": {self.reason.text}" if self.reason else ""
            when = starts(self.estimate, self.passed)
            return f"{self.id} is number {self.position} in line{reason}{f'; {when}' if when else ''}."
        return None

    def _place(self) -> tuple[object, ...]:
        # A reason's text may count down seconds.
        waits = self.phase == "waiting"
        place = (self.position, self.reason and self.reason.code) if waits else (self.worker,)
        return self.phase, *place


Tell = Callable[[Progress, WatchEvent], None]


def tell_lines(progress: Progress, event: WatchEvent) -> None:
    """Tell on the error output what is worth a line."""
    if progress.follow(event) and (sentence := progress.sentence()):
        say(sentence, err=True)


def tell_nothing(progress: Progress, event: WatchEvent) -> None:
    """Only keep in mind what happened."""
    progress.follow(event)


class Wait:
    """One job, put and followed to its end; `job` is the last that was read of it, None before it is put."""

    def __init__(self, queue: str, tell: Tell = tell_lines) -> None:
        self.job: JobDocument | None = None
        self.phase: str | None = None
        self._queue = queue
        self._tell = tell

    async def put(self, client: Client, body: Mapping[str, Any]) -> JobDocument:
        """Put a job and give it when it has ended; `UnknownJob` if it is deleted before.

        It is this version that is followed, whatever is put under its key meanwhile.
        """
        return await self.follow(client, await client.put(self._queue, body))

    async def follow(self, client: Client, job: JobDocument) -> JobDocument:
        """Follow a version of a job to its end."""
        self.job, self.phase = job, job.phase
        progress = Progress(job.id)
        events: AsyncGenerator[WatchEvent, None] = client.events(self._queue, job.id, job.version)
        async with aclosing(events):
            async for event in events:
                self._tell(progress, event)
                self.phase = progress.phase
                if isinstance(event, StateEvent) and event.state == "deleted":
                    raise UnknownJob(self._queue, job.id)
        self.job = await client.job(self._queue, job.id, job.version)
        self.phase = self.job.phase
        return self.job


def exit_status(job: JobDocument) -> int:
    """Give the exit status of an ended job: 0 if it completed, else its program's own, or 1 without one.

    A program that a signal ended has 128 and the signal's number, as shells have it.
    """
    if job.state == "completed":
        return 0
    ended_with = job.result.get("exit") if "command" in job.run and isinstance(job.result, dict) else None
    if not isinstance(ended_with, int) or ended_with == 0:
        return 1
    return ended_with if ended_with > 0 else 128 - ended_with


def left_alone(id: str, phase: str | None) -> str:
    """Say what becomes of a job that nobody waits for any more."""
    goes_on = {"waiting": "stays in line", "running": "goes on running"}.get(phase or "", "has ended")
    return f"maitred: {id} {goes_on}; `maitred show` tells what became of it, `maitred cancel` ends it."
