"""How answers look: tables for people, JSON for programs."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table
from rich.text import Text

from maitred import duration
from maitred.cli.spans import starts, starts_briefly
from maitred.wire import (
    BatchDocument,
    CheckDocument,
    Hold,
    JobDocument,
    OthersJob,
    Page,
    ProfileDocument,
    QueueDocument,
    ReconcileDocument,
    SubmitterDocument,
)


def say(line: str, *, err: bool = False) -> None:
    """Print one line, or tell it on the error output."""
    typer.echo(str(plain(line)), err=err)


def print_json(document: BaseModel) -> None:
    """Print a document as the server wrote it, on one line."""
    told = isinstance(document, JobDocument | BatchDocument) and document.outcome is None
    without = {"outcome"} if told else set()
    typer.echo(document.model_dump_json(by_alias=True, exclude=without))


def print_job(job: JobDocument, *, as_json: bool) -> None:
    """Print one job."""
    if as_json:
        print_json(job)
        return
    print_pairs(
        [
            ("id", job.id),
            ("key", job.key),
            ("outcome", job.outcome),
            ("submitter", f"{job.submitter.type}:{job.submitter.id}"),
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


def print_line(page: Page[JobDocument | OthersJob], queue: QueueDocument, *, as_json: bool) -> None:
    """Print the queue in one line, and the first of those who wait; programs get the line alone."""
    if as_json:
        print_json(page)
        return
    print_queue(queue, as_json=False)
    if not page.items:
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("#", justify="right")
    classes = ("class",) if len(queue.classes) > 1 else ()
    foreseen = ("starts",) if any(_expected(job) for job in page.items) else ()
    for heading in ("key", "submitter", "band", *classes, *foreseen, "waits for"):
        table.add_column(heading, overflow="fold")
    # An id is copied whole or not at all, so it keeps its room in the narrowest table.
    longest = max(len(job.id) for job in page.items)
    table.add_column("id", no_wrap=True, min_width=longest)
    for job in page.items:
        if isinstance(job, OthersJob):
            its_class = [job.class_ or "elastic"] if classes else []
            cells = [job.position, "", "another", job.band, *its_class, *("" for _ in foreseen), "", job.id]
            table.add_row(*plain_row(cells))
            continue
        who = f"{job.submitter.type}:{job.submitter.id}"
        reason = job.waiting_for.text if job.waiting_for else ""
        its_class = [job.class_ or "elastic"] if classes else []
        when = [starts_briefly(job.estimate)] if foreseen else []
        table.add_row(*plain_row([job.position, job.key, who, job.band, *its_class, *when, reason, job.id]))
    console().print(table)
    if page.total is not None and page.total > len(page.items):
        typer.echo(f"and {page.total - len(page.items)} more")


def _expected(job: JobDocument | OthersJob) -> bool:
    """Tell whether it is foreseen when a job starts."""
    return isinstance(job, JobDocument) and bool(job.estimate and job.estimate.expected)


def print_queue(queue: QueueDocument, *, as_json: bool) -> None:
    """Print a queue in one line: whether it is paused, by whom and why, what is in it, and its free slots."""
    if as_json:
        print_json(queue)
        return
    say(queue_sentence(queue))


def queue_sentence(queue: QueueDocument) -> str:
    """Say a queue in one line."""
    slots = f"{queue.free} of {queue.slots} slots free" if queue.slots else "no slots"
    held = f"{queue.counts['held']} held, " if queue.counts.get("held") else ""
    counts = f"{queue.waiting} waiting, {held}{queue.running} running, {slots}"
    return f"{queue.name} is {_open_or_paused(queue)}: {counts}."


def print_check(found: CheckDocument, *, as_json: bool) -> None:
    """Print what a check found, a line for each."""
    if as_json:
        print_json(found)
        return
    for violation in found.violations:
        repaired = " (repaired)" if violation.repaired else ""
        say(f"{violation.code}: {violation.text}{repaired}")
    if not found.violations:
        typer.echo(f"{found.queue} is sound.")


def print_submitter(submitter: SubmitterDocument, who: Mapping[str, str], *, as_json: bool) -> None:
    """Print in one line whether a submitter is held, and what it has in line."""
    if as_json:
        print_json(submitter)
        return
    held = "held" if submitter.held else "not held"
    say(f"{who['type']}:{who['id']} is {held}: {len(submitter.jobs)} waiting.")


def print_profile(profile: ProfileDocument, *, as_json: bool) -> None:
    """Print in one line whether a profile is held, by whom and why."""
    if as_json:
        print_json(profile)
        return
    say(f"{profile.name} is {hold_sentence(profile.hold) if profile.hold else 'not held'}.")


def hold_sentence(hold: Hold) -> str:
    """Say who holds it, and why."""
    by = f" by {hold.by}" if hold.by else ""
    return f"held{by}{f' ({hold.reason})' if hold.reason else ''}"


def holds_sentence(holds: Iterable[Hold]) -> str | None:
    """Say all that holds a job or a batch; None if nothing does."""
    return "; ".join(f"{hold.kind} {hold.name} {hold_sentence(hold)}" for hold in holds) or None


def print_reconcile(done: ReconcileDocument, *, as_json: bool) -> None:
    """Print what was done, a line for each."""
    if as_json:
        print_json(done)
        return
    for change in done.changes:
        say(f"{change.code}: {change.text}")
    if not done.changes:
        where = "its line and its ledger agree" if done.ledger else "its ledger is in the same store"
        say(f"Nothing to do for {done.queue}: {where}.")


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
    """Give a table with these headings."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        # An id is copied whole or not at all.
        made.add_column(heading, overflow="fold", no_wrap=heading == "id")
    return made


def plain(value: object) -> Text:
    """Keys may hold any character; none of them may colour the table or move the cursor."""
    return Text("".join(c if c.isprintable() else "�" for c in str(value)))


def plain_row(values: Iterable[object]) -> list[Text]:
    """Give the cells of a row, each harmless."""
    return [plain(value) for value in values]


def clock(moment: datetime | None) -> str | None:
    """Say a time."""
    return None if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def console() -> Console:
    """Give where tables are printed."""
    return Console(highlight=False, soft_wrap=False)
