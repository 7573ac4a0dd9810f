"""One frame of `maitred top`: a queue at a glance."""

import json
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from maitred.cli.printing import plain, queue_sentence
from maitred.cli.spans import span, starts_briefly
from maitred.wire import JobDocument, Page, QueueDocument, RunningJob


class Frame(NamedTuple):
    """What is shown at once."""

    queue: QueueDocument
    running: Page[RunningJob]
    line: Page[JobDocument]

    def as_json(self) -> str:
        """Give the three documents in one, as the server wrote them."""
        parts = {name: part.model_dump(mode="json", by_alias=True) for name, part in self._asdict().items()}
        return json.dumps(parts, ensure_ascii=False)


def show(frame: Frame, rows: int) -> RenderableType:
    """Draw a frame with so many rows in each table."""
    parts: list[RenderableType] = [plain(queue_sentence(frame.queue)), Text()]
    if waits := frame.queue.waits:
        said = f"Waits of the last {waits.count} starts: {span(waits.p50)} (half), {span(waits.p90)} (90 %)"
        parts[1:1] = [plain(said)]
    parts += [_classes(frame.queue), Text(), _running(frame, rows), Text(), _line(frame, rows)]
    return Group(*parts)


def _table(title: str, *columns: str, right: tuple[str, ...] = ()) -> Table:
    table = Table(
        box=None, pad_edge=False, header_style="bold", title=title, title_justify="left", title_style="bold"
    )
    for name in columns:
        # An id is copied whole or not at all.
        table.add_column(
            name, justify="right" if name in right else "left", overflow="fold", no_wrap=name == "id"
        )
    return table


def _classes(queue: QueueDocument) -> Table:
    table = _table("Classes", "class", "cap", "used", "", right=("cap", "used"))
    for each in queue.classes:
        width = min(each.limit, 40)
        full = round(width * each.used / each.limit) if each.limit else 0
        bar = "█" * min(width, full) + "·" * max(0, width - full)
        table.add_row(*map(plain, (each.name, span(each.cap), f"{each.used}/{each.limit}", bar)))
    return table


def _running(frame: Frame, rows: int) -> Table:
    right = ("elapsed", "granted")
    table = _table(
        f"Running: {frame.running.total or 0}",
        *("key", "submitter", "class", "elapsed", "granted", "worker", "id"),
        right=right,
    )
    for job in frame.running.items[:rows]:
        its_class = f"{job.class_}{', elastic' if job.elastic else ''}"
        who = f"{job.submitter.type}:{job.submitter.id}"
        cells = (job.key, who, its_class, span(job.elapsed), span(job.duration), job.worker, job.id)
        table.add_row(*map(plain, cells))
    return table


def _line(frame: Frame, rows: int) -> Table:
    columns = ("#", "key", "submitter", "class", "starts", "waits for", "id")
    table = _table(f"Waiting: {frame.line.total or 0}", *columns, right=("#",))
    for job in frame.line.items[:rows]:
        who = f"{job.submitter.type}:{job.submitter.id}"
        reason = job.waiting_for.text if job.waiting_for else ""
        cells = (
            job.position,
            job.key,
            who,
            job.class_ or "elastic",
            starts_briefly(job.estimate),
            reason,
            job.id,
        )
        table.add_row(*map(plain, cells))
    return table
