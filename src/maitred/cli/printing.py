"""How answers look: tables for people, JSON for programs."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from os import environ
from typing import Any, Literal, TypeVar

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table
from rich.text import Text

from maitred import duration
from maitred.cli.spans import starts
from maitred.wire import BatchDocument, Hold, JobDocument, Page, QueueDocument, RunningJob

UNBOUNDED = 10_000

Item = TypeVar("Item", bound=BaseModel)


def say(line: str, *, err: bool = False) -> None:
    """Print one line, or tell it on the error output."""
    typer.echo(str(plain(line)), err=err)


def print_json(document: BaseModel | Mapping[str, Any]) -> None:
    """Print a document as the server wrote it, on one line."""
    if not isinstance(document, BaseModel):
        typer.echo(json.dumps(document, ensure_ascii=False))
        return
    told = isinstance(document, JobDocument | BatchDocument) and document.outcome is None
    without = {"outcome"} if told else set()
    typer.echo(document.model_dump_json(by_alias=True, exclude=without))


def print_job(job: JobDocument) -> None:
    """Print one job."""
    print_pairs(
        [
            ("id", job.id),
            ("key", job.key),
            ("outcome", job.outcome),
            ("submitter", who_of(job)),
            ("state", " ".join(filter(None, (job.state, job.phase and f"({job.phase})")))),
            ("code", job.code),
            ("message", job.message),
            ("position", job.position),
            ("waiting for", job.waiting_for and job.waiting_for.text),
            ("estimate", starts(job.estimate)),
            ("holds", holds_sentence(job.holds)),
            ("batch", job.batch),
            ("profile", job.profile_name),
            ("band", f"{job.band}, priority {job.priority}"),
            ("class", _class(job)),
            ("delay", job.delay_reason),
            ("created", clock(job.created_at)),
            ("released", clock(job.release_at) if job.phase == "waiting" else None),
            ("worker", job.worker),
            ("attempt", job.attempt or None),
            ("retries", job.retry_count or None),
            ("version", job.version if job.version > 1 else None),
            ("result", None if job.result is None else json.dumps(job.result, ensure_ascii=False)),
            ("artifacts", ", ".join(f"{kept.name} ({kept.size} B)" for kept in job.artifacts) or None),
        ]
    )


def _class(job: JobDocument) -> str:
    """Say which class a job asked for, and how long it may run where that is known."""
    name = job.class_ or ("interactive" if job.band == "interactive" else "elastic")
    if job.duration is None:
        return name
    return f"{name}, {'up to ' if name == 'elastic' else ''}{duration.show(round(job.duration * 1_000_000))}"


def print_queue(queue: QueueDocument) -> None:
    """Print a queue in one line: whether it is paused, by whom and why, what is in it, and its free slots."""
    say(queue_sentence(queue))


def queue_sentence(queue: QueueDocument) -> str:
    """Say a queue in one line."""
    slots = f"{queue.free} of {queue.slots} slots free" if queue.slots else "no slots"
    held = f"{queue.counts['held']} held, " if queue.counts.get("held") else ""
    counts = f"{queue.waiting} waiting, {held}{queue.running} running, {slots}"
    return f"{queue.name} is {_open_or_paused(queue)}: {counts}."


def hold_sentence(hold: Hold) -> str:
    """Say who holds it, and why."""
    by = f" by {hold.by}" if hold.by else ""
    return f"held{by}{f' ({hold.reason})' if hold.reason else ''}"


def holds_sentence(holds: Iterable[Hold]) -> str | None:
    """Say all that holds a job or a batch; None if nothing does."""
    return "; ".join(f"{hold.kind} {hold.name} {hold_sentence(hold)}" for hold in holds) or None


def _open_or_paused(queue: QueueDocument) -> str:
    if not queue.paused:
        return "open"
    by = f" by {queue.pause.by}" if queue.pause and queue.pause.by else ""
    why = f" ({queue.pause.reason})" if queue.pause and queue.pause.reason else ""
    return f"paused{by}{why}"


def print_pairs(pairs: Iterable[tuple[str, object]]) -> None:
    """Print names with their values, a line for each that there is."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in pairs:
        if value is not None:
            table.add_row(*plain_row([name, value]))
    console().print(table)


def table(*headings: str) -> Table:
    """Give a table with these headings; `>` before one puts its column to the right."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        # An id is copied whole or not at all, so it keeps its room in the narrowest table.
        justify: Literal["left", "right"] = "right" if heading.startswith(">") else "left"
        name = heading.removeprefix(">")
        made.add_column(name, justify=justify, overflow="fold", no_wrap=name == "id")
    return made


def print_page(
    page: Page[Item], headings: Sequence[str], cells: Callable[[Item], Iterable[object]], nothing: str
) -> None:
    """Print a page as a table, a row for each item; say that there is nothing, or how many more there are."""
    if not page.items:
        say(nothing)
        return
    rows = table(*headings)
    for item in page.items:
        rows.add_row(*plain_row(cells(item)))
    console().print(rows)
    say_more(page)


def say_more(page: Page[Any]) -> None:
    """Say how many there are beside those of a page."""
    if page.total is not None and page.total > len(page.items):
        say(f"and {page.total - len(page.items)} more")


def who_of(what: JobDocument | RunningJob | BatchDocument) -> str:
    """Say whose something is."""
    return f"{what.submitter.type}:{what.submitter.id}"


def plain(value: object) -> Text:
    """Keys may hold any character; none of them may colour the table or move the cursor."""
    return Text("".join(c if c.isprintable() else "�" for c in str(value)))


def plain_row(values: Iterable[object]) -> list[Text]:
    """Give the cells of a row, each harmless."""
    return [plain(value) for value in values]


def clock(moment: datetime | None) -> str | None:
    """Say a time."""
    return None if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


class _Screen(Console):
    """A console that tells when nobody reads any more, instead of ending the program."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console(*, err: bool = False) -> Console:
    """Give where tables are printed; a row is a line where no terminal says how wide it is."""
    screen = _Screen(stderr=err, highlight=False, soft_wrap=False)
    if not (screen.is_terminal or environ.get("COLUMNS")):
        screen.width = UNBOUNDED
    return screen
