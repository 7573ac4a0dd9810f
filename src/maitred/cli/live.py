"""The commands that stay and look on: watch a job, and the whole queue at a glance."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from maitred.cli import options
from maitred.cli.address import find_server
from maitred.cli.exits import expected
from maitred.cli.printing import plain, say
from maitred.cli.top import Frame, show
from maitred.cli.waiting import INTERRUPTED, Progress, Wait, exit_status
from maitred.client import Client
from maitred.wire import JobDocument, WatchEvent

T = TypeVar("T")

FRAMES_A_SECOND = 4
TOP_EVERY = 1.0

commands = typer.Typer()


def _ask(server: str | None, data: Path, question: Callable[[Client], Awaitable[T]]) -> T:
    """Ask a server; Ctrl-C is how one leaves, so it says nothing."""

    async def ask() -> T:
        async with Client(find_server(server, data)) as client:
            return await question(client)

    try:
        return asyncio.run(ask())
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


@commands.command()
@expected
def watch(
    id: options.JobId,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    version: Annotated[int | None, typer.Option("--version", min=1, help="An older version.")] = None,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: Annotated[bool, typer.Option("--json", help="Print each event as a line of JSON.")] = False,
) -> None:
    """Watch a job until it has ended: its place and why it waits, then its run, then what it printed.

    Ends with the job's exit status.
    """

    async def look_on(client: Client) -> JobDocument:
        job = await client.job(queue, id, version)
        if as_json:
            return await Wait(queue, _tell_json).follow(client, job)
        if not sys.stderr.isatty():
            return await Wait(queue).follow(client, job)
        with Live(console=Console(stderr=True), transient=True, auto_refresh=False) as live:
            display = Display(job, live)
            drawing = asyncio.create_task(display.keep_drawing())
            try:
                return await Wait(queue, display.tell).follow(client, job)
            finally:
                drawing.cancel()

    ended = _ask(server, data, look_on)
    if not as_json:
        _print_end(ended)
    raise typer.Exit(exit_status(ended))


def _tell_json(progress: Progress, event: WatchEvent) -> None:
    progress.follow(event)
    without = {"id"} if event.id is None else set()
    typer.echo(event.model_dump_json(exclude=without))


class Display:
    """A line at the bottom of a terminal that says where a job is, and is drawn again as time passes."""

    def __init__(self, job: JobDocument, live: Live) -> None:
        self._job = job
        self._live = live
        self._progress: Progress | None = None

    def tell(self, progress: Progress, event: WatchEvent) -> None:
        """Show what happened."""
        first, self._progress = self._progress is None, progress
        progress.follow(event)
        if first and progress.phase == "running" and self._job.timeline:
            progress.started((datetime.now(UTC) - self._job.timeline[-1].start).total_seconds())
        self._draw()

    async def keep_drawing(self) -> None:
        """Draw again and again until cancelled: estimates come nearer, and runs get longer."""
        while True:
            await asyncio.sleep(1 / FRAMES_A_SECOND)
            self._draw()

    def _draw(self) -> None:
        progress = self._progress
        sentence = progress and progress.sentence(running_time=True)
        if progress is None or sentence is None:
            return
        row = Table.grid(padding=(0, 1))
        if progress.phase == "running" and progress.granted:
            bar = ProgressBar(progress.granted, min(progress.passed, progress.granted), width=24)
            row.add_row(plain(sentence), bar)
        else:
            row.add_row(plain(sentence))
        self._live.update(row, refresh=True)


def _print_end(job: JobDocument) -> None:
    """Print what the job printed, or its result; and why it failed, if it did."""
    result = job.result
    if "command" in job.run and isinstance(result, dict):
        sys.stdout.write(str(result.get("stdout") or ""))
        sys.stdout.flush()
        sys.stderr.write(str(result.get("stderr") or ""))
        sys.stderr.flush()
    elif result is not None:
        typer.echo(json.dumps(result, ensure_ascii=False))
    if job.state != "completed":
        why = f": {job.message}" if job.message else ""
        say(f"maitred: {job.id} {job.state} ({job.code}){why}", err=True)


@commands.command()
@expected
def top(
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    once: Annotated[bool, typer.Option("--once", help="Print one frame and end.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=500, help="Rows of each table.")] = 15,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: Annotated[bool, typer.Option("--json", help="Print one frame as JSON.")] = False,
) -> None:
    """Look on a queue: its classes and slots, what runs, and who is next; drawn anew every second."""

    async def look(client: Client) -> Frame:
        page, running = await client.line(queue, limit), await client.running(queue)
        return Frame(await client.queue(queue), running, page)

    async def look_on(client: Client) -> None:
        with Live(console=Console(), screen=True, auto_refresh=False) as live:
            while True:
                live.update(show(await look(client), limit), refresh=True)
                await asyncio.sleep(TOP_EVERY)

    if once or as_json or not sys.stdout.isatty():
        frame = _ask(server, data, look)
        if as_json:
            typer.echo(frame.as_json())
        else:
            Console(highlight=False).print(show(frame, limit))
    else:
        _ask(server, data, look_on)
