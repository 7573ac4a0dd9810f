"""What `maitred top` shows: a queue at a glance, with its slots and classes, what runs, and who is next.

It is drawn anew every second. A server that goes away meanwhile may come back: what was seen last stays, with
a line that says so.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple, TypeAlias

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from maitred.cli.bars import Bar, dim, load_style
from maitred.cli.printing import console, plain, queue_sentence, who_of
from maitred.cli.spans import span, starts_briefly
from maitred.client import Client
from maitred.errors import MaitredError, ServerUnreachable, StoreUnavailable
from maitred.wire import JobDocument, OthersJob, Page, QueueDocument, RunningJob

EVERY = 1.0
WIDE = 110
LONGEST = 48
LONGEST_NAME = 24
# The lines of a frame that are no rows of running or waiting jobs; each class takes one more.
_AROUND = 12

_Rows: TypeAlias = Page[RunningJob | OthersJob] | Page[JobDocument | OthersJob]


class Frame(NamedTuple):
    """What is shown at once."""

    queue: QueueDocument
    running: Page[RunningJob | OthersJob]
    line: Page[JobDocument | OthersJob]

    def document(self) -> dict[str, Any]:
        """Give the three documents in one, as the server wrote them."""
        parts = {name: part.model_dump(mode="json", by_alias=True) for name, part in self._asdict().items()}
        for job in parts["line"]["items"]:
            job.pop("outcome", None)
        return parts


async def look(client: Client, queue: str, rows: int) -> Frame:
    """See a queue as it is now, with so many of those who run and of those who wait."""
    answers = await asyncio.gather(
        client.queue(queue), client.running(queue, limit=rows), client.line(queue, limit=rows)
    )
    return Frame(*answers)


async def look_on(client: Client, queue: str, rows: int) -> None:
    """Draw a queue again and again until cancelled; what can be told only of the first try is raised."""
    screen = console()
    frame = await look(client, queue, rows)
    lost: MaitredError | None = None
    with Live(console=screen, screen=True, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            fitting = max(2, screen.height - _AROUND - len(frame.queue.classes))
            live.update(show(frame, rows, width=screen.width, fitting=fitting, lost=lost), refresh=True)
            await asyncio.sleep(EVERY)
            try:
                frame, lost = await look(client, queue, rows), None
            except (ServerUnreachable, StoreUnavailable) as error:
                lost = error


def print_frame(frame: Frame, rows: int) -> None:
    """Draw a frame once."""
    screen = console()
    screen.print(show(frame, rows, width=screen.width))


def show(
    frame: Frame, rows: int, *, width: int, fitting: int | None = None, lost: MaitredError | None = None
) -> RenderableType:
    """Draw a frame with so many rows in each table; where only some fit, they share them.

    Ids and workers are shown where there is room for them, since half an id cannot be copied.
    """
    wide = width >= WIDE
    running = waiting = rows
    if fitting is not None:
        running = min(rows, max(fitting // 2, fitting - len(frame.line.items)))
        waiting = min(rows, fitting - min(running, len(frame.running.items)))
    return Group(
        *_head(frame.queue, lost),
        Text(),
        _levels(frame.queue),
        Text(),
        _running(frame.running, running, wide=wide),
        *_more(frame.running, running),
        Text(),
        _line(frame.line, waiting, wide=wide),
        *_more(frame.line, waiting),
    )


def _head(queue: QueueDocument, lost: MaitredError | None) -> Iterable[RenderableType]:
    yield Text(plain(queue_sentence(queue)).plain, style="bold yellow" if queue.paused else "bold")
    if waits := queue.waits:
        half, most = span(waits.p50), span(waits.p90)
        yield dim(f"Waits of the last {waits.count} starts: half at most {half}, nine in ten at most {most}.")
    if lost:
        yield Text(f"{plain(lost)} This was seen at {queue.now:%H:%M:%S} UTC.", style="bold red")


def _levels(queue: QueueDocument) -> Table:
    """Draw what is used of the slots, and of each class where there are several."""
    table = _table("", "", ">", "")
    busy = queue.slots - queue.free
    table.add_row("slots", "", f"{busy} of {queue.slots}", _load(busy, queue.slots))
    for each in queue.classes if len(queue.classes) > 1 else ():
        cap = dim(f"up to {span(each.cap)}")
        table.add_row(plain(each.name), cap, f"{each.used} of {each.limit}", _load(each.used, each.limit))
    return table


def _load(used: int, limit: int) -> Bar:
    return Bar(used, limit, style=load_style(used, limit))


def _running(page: Page[RunningJob | OthersJob], rows: int, *, wide: bool) -> Table:
    table = _table("runs~", "submitter", "class", ">time", "", *(("worker", "id") if wide else ()))
    for job in page.items[:rows]:
        if isinstance(job, OthersJob):
            table.add_row("", dim("another"), plain(job.class_ or ""))
            continue
        time = f"{span(job.elapsed)} of {span(job.duration)}"
        its_class = f"{job.class_}{' (elastic)' if job.elastic else ''}"
        ends = [plain(job.worker), dim(plain(job.id).plain)] if wide else []
        table.add_row(_short(job.key), _who(job), plain(its_class), time, _passed(job), *ends)
    if not page.items:
        table.add_row(dim("nothing"))
    return table


def _passed(job: RunningJob) -> Bar:
    return Bar(job.elapsed, job.duration, widest=16)


def _line(page: Page[JobDocument | OthersJob], rows: int, *, wide: bool) -> Table:
    table = _table(">#", "waits~", "submitter", "class", "starts", "because~", *(("id",) if wide else ()))
    for job in page.items[:rows]:
        if isinstance(job, OthersJob):
            table.add_row(plain(job.position), "", dim("another"), plain(job.class_ or "elastic"))
            continue
        reason = _short(job.waiting_for.text if job.waiting_for else "")
        its_class = plain(job.class_ or "elastic")
        starts = plain(starts_briefly(job.estimate))
        ends = [dim(plain(job.id).plain)] if wide else []
        table.add_row(plain(job.position), _short(job.key), _who(job), its_class, starts, reason, *ends)
    if not page.items:
        table.add_row("", dim("nobody"))
    return table


def _more(page: _Rows, rows: int) -> Iterable[RenderableType]:
    hidden = (page.total or 0) - min(rows, len(page.items))
    if hidden > 0:
        yield dim(f"and {hidden} more")


def _table(*columns: str) -> Table:
    """Make a table; `>` before a name puts it to the right, `~` after it lets it shrink."""
    table = Table(
        box=None, pad_edge=False, header_style="bold", show_header=any(map(str.isalpha, "".join(columns)))
    )
    for name in columns:
        justify: Literal["left", "right"] = "right" if name.startswith(">") else "left"
        table.add_column(
            name.strip(">~"), justify=justify, no_wrap=not name.endswith("~"), overflow="ellipsis"
        )
    return table


def _short(text: str) -> Text:
    """Give text that takes one line, however little room there is."""
    short = plain(text)
    short.truncate(LONGEST, overflow="ellipsis")
    short.no_wrap = True
    return short


def _who(job: JobDocument | RunningJob) -> Text:
    who = plain(who_of(job))
    who.truncate(LONGEST_NAME, overflow="ellipsis")
    return who
