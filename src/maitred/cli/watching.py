"""What `maitred watch` shows: a job's place while it waits, its time while it runs, and at last its output.

On a terminal that is a display of three lines that is drawn again as time passes; elsewhere a line for each
change. Both go to the error output, so that the output is the job's own.
"""

import asyncio
import json
import re
import sys
import time
from contextlib import aclosing, suppress
from datetime import datetime
from typing import TextIO

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from maitred.cli.bars import Bar, dim
from maitred.cli.following import follow, with_news
from maitred.cli.printing import holds_sentence, plain, say
from maitred.cli.spans import span, starts
from maitred.cli.waiting import programs_of, sentence
from maitred.client import Client
from maitred.errors import UnknownJob
from maitred.wire import JobDocument, OutputEvent

FRAMES_A_SECOND = 4

# Of what a program prints, line breaks, tabs and colours reach a terminal; nothing that moves about.
_COLOUR_OR_CONTROL = re.compile(r"(\x1b\[[0-9;]*m)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


class Sight:
    """A job as it was seen last, and the time that has passed since."""

    def __init__(self, job: JobDocument, now: datetime) -> None:
        self.job = job
        self._seen = self._began = time.monotonic()
        if job.phase == "running" and job.timeline:
            self._began -= max(0.0, (now - job.timeline[-1].start).total_seconds())

    def see(self, job: JobDocument) -> None:
        """See it anew."""
        if (job.phase, job.attempt) != (self.job.phase, self.job.attempt):
            self._began = time.monotonic()
        if job.estimate is not self.job.estimate:
            self._seen = time.monotonic()
        self.job = job

    @property
    def elapsed(self) -> float:
        """The seconds that it has been running."""
        return time.monotonic() - self._began

    def expected(self) -> str | None:
        """Say when it is expected to start; None if nobody knows."""
        return starts(self.job.estimate, time.monotonic() - self._seen)

    def line(self) -> str | None:
        """Say in one line where it is."""
        said = sentence(self.job)
        if said and self.job.phase == "running":
            granted = f", up to {span(self.job.duration)}" if self.job.duration else ""
            progress = self.job.progress
            says = f" {progress.fraction:.0%} {progress.message}".rstrip() if progress else ""
            return f"{said}{granted}.{says}"
        expected = self.expected()
        return f"{said}; {expected}." if said and expected else said and f"{said}."

    def __rich__(self) -> RenderableType:
        shown = {"waiting": self._waiting, "running": self._running, "held": self._held}
        below = shown.get(self.job.phase or self.job.state)
        return Group(self._headline(), *(below() if below else ()))

    def _headline(self) -> Text:
        job = self.job
        return Text.assemble(
            (plain(job.key).plain, "bold"), "  ", dim(f"{job.queue}, {_who(job)}, {plain(job.id)}")
        )

    def _waiting(self) -> list[RenderableType]:
        job, estimate = self.job, self.job.estimate
        place = "waiting" if job.position is None else f"number {job.position} in line"
        reason = f": {plain(job.waiting_for.text)}" if job.waiting_for else ""
        shown: list[RenderableType] = [Text.assemble((place, "yellow"), reason)]
        if estimate and estimate.expected and estimate.as_of:
            waited = (estimate.as_of - job.created_at).total_seconds() + time.monotonic() - self._seen
            shown.append(Bar(waited, (estimate.expected - job.created_at).total_seconds(), style="yellow"))
        shown.append(dim(self.expected() or "when it will start cannot be said yet"))
        return shown

    def _held(self) -> list[RenderableType]:
        why = holds_sentence(self.job.holds) or "nobody says why"
        return [Text.assemble(("held", "magenta"), f": {plain(why)}")]

    def _running(self) -> list[RenderableType]:
        job = self.job
        attempt = f", attempt {job.attempt}" if job.attempt > 1 else ""
        granted = f" of {span(job.duration)}" if job.duration else ""
        shown: list[RenderableType] = [
            Text.assemble(("running", "green"), f" on {plain(job.worker or 'a worker')}{attempt}"),
            Bar(self.elapsed, job.duration or 0.0, style="green"),
            dim(f"{span(self.elapsed)}{granted}"),
        ]
        if job.progress:
            says = f"{job.progress.fraction:.0%} {plain(job.progress.message)}".rstrip()
            shown.insert(1, Text(says, style="green"))
        return shown


async def watch_as_json(client: Client, job: JobDocument) -> JobDocument:
    """Print each event as a line; give the job when it has ended, `UnknownJob` if it is deleted before."""
    async with aclosing(client.watch(job.queue, job.id, job.version)) as events:
        async for event in events:
            typer.echo(event.model_dump_json(exclude={"id"} if event.id is None else set()))
            job = with_news(job, event)
    if job.state == "deleted":
        raise UnknownJob(job.queue, job.id)
    return job


class Heard:
    """What a job says, printed as it comes: each stream on its own output.

    With a `console` that draws below it, only whole lines are printed, above.
    """

    def __init__(self, console: Console | None = None) -> None:
        self.anything = False
        self._console = console
        self._begun: dict[str, str] = {}

    def __call__(self, event: OutputEvent) -> None:
        """Print a piece."""
        self.anything = True
        cut = f"[{event.cut} bytes cut]\n" if event.cut else ""
        output = sys.stderr if event.stream == "stderr" else sys.stdout
        text = self._begun.pop(event.stream, "") + cut + event.text
        if self._console and output.isatty():
            text, end, rest = text.rpartition("\n")
            self._begun[event.stream] = rest
            if end:
                self._console.print(Text.from_ansi(harmless(text)), soft_wrap=True)
        else:
            print_output(output, text)

    def close(self) -> None:
        """Print lines that have not ended."""
        for stream, text in self._begun.items():
            print_output(sys.stderr if stream == "stderr" else sys.stdout, text)
        self._begun.clear()


async def watch_in_lines(client: Client, sight: Sight, heard: Heard) -> JobDocument:
    """Tell each change in a line; give the job when it has ended, `UnknownJob` if it is deleted before."""
    told = None
    async with aclosing(follow(client, sight.job, heard)) as seen:
        async for job in seen:
            sight.see(job)
            if (line := sight.line()) and line != told:
                say(line, err=True)
                told = line
    return sight.job


async def watch_on_terminal(client: Client, console: Console, sight: Sight, heard: Heard) -> JobDocument:
    """Draw the job again and again; give it when it has ended, `UnknownJob` if it is deleted before."""
    with Live(
        sight,
        console=console,
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as live:

        async def draw() -> None:
            while True:
                live.refresh()
                await asyncio.sleep(1 / FRAMES_A_SECOND)

        drawing = asyncio.create_task(draw())
        try:
            async with aclosing(follow(client, sight.job, heard)) as seen:
                async for job in seen:
                    sight.see(job)
                    live.refresh()
        finally:
            drawing.cancel()
            with suppress(asyncio.CancelledError):
                await drawing
    return sight.job


def print_end(job: JobDocument, *, heard: bool = False) -> None:
    """Print what programs printed, unless that was heard, or a handler's result; and why it failed."""
    programs = programs_of(job)
    for program in () if heard else programs:
        print_output(sys.stdout, str(program.get("stdout") or ""))
        print_output(sys.stderr, str(program.get("stderr") or ""))
    if not programs and job.result is not None:
        typer.echo(json.dumps(job.result, ensure_ascii=False))
    if job.state != "completed":
        why = f": {job.message}" if job.message else ""
        say(f"maitred: {job.id} {job.state} ({job.code}){why}", err=True)


def harmless(text: str) -> str:
    """Give text without what could move a terminal's cursor or worse."""
    return _COLOUR_OR_CONTROL.sub(lambda found: found[1] or "�", text)


def print_output(output: TextIO, text: str) -> None:
    """Print what a program printed; on a terminal, only what is harmless there."""
    output.write(harmless(text) if output.isatty() else text)
    output.flush()


def _who(job: JobDocument) -> Text:
    return plain(f"{job.submitter.type}:{job.submitter.id}")
