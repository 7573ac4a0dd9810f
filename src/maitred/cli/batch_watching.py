"""What `maitred batch watch` shows: a bar for each state that jobs of the batch are in, until it is reported.

On a terminal that is drawn again as it changes; elsewhere a line for each change. Both go to the error
output, and what is said at the end to the output.
"""

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from maitred.cli.bars import Bar, dim
from maitred.cli.batch_printing import STATES, counts_sentence
from maitred.cli.printing import console, plain, say
from maitred.client import Client
from maitred.errors import UnknownBatch
from maitred.wire import BatchDocument, BatchEvent, BatchReportEvent, BatchStateEvent

_STYLES = {
    "pending": "cyan",
    "held": "magenta",
    "processing": "blue",
    "completed": "green",
    "failed": "red",
    "deleted": "yellow",
}


class BatchSight:
    """A batch as it was seen last."""

    def __init__(self, batch: BatchDocument) -> None:
        self.id = batch.id
        self.state: str = batch.state
        self.counts = batch.counts
        self.sealed = batch.sealed
        self._seal = batch.seal
        self.message = batch.message
        self._name = batch.external_id
        self._where = batch.queue

    def see(self, event: BatchEvent) -> None:
        """See it anew."""
        if isinstance(event, BatchStateEvent):
            self.state, self.counts = event.state, event.counts
            self.sealed, self.message = event.sealed, event.message
        elif isinstance(event, BatchReportEvent):
            self.state, self.message = event.state, event.message

    def line(self) -> str:
        """Say in one line where it is."""
        open_ = "" if self.sealed or self._seal else ", open"
        return f"{self.id} is {self.state}{open_}: {counts_sentence(self.counts, sealed=self.sealed)}."

    def __rich__(self) -> RenderableType:
        name = f"  {self._name}" if self._name else ""
        total = sum(self.counts.values())
        more = "" if self.sealed else ", more may come"
        head = Text.assemble((self.id, "bold"), plain(name), "  ", dim(f"{plain(self._where)}, {self.state}"))
        bars = Table.grid(padding=(0, 1))
        bars.add_column()
        bars.add_column(justify="right")
        bars.add_column()
        for state in STATES:
            if number := self.counts.get(state, 0):
                bars.add_row(state, str(number), Bar(number, total, style=_STYLES[state]))
        return Group(head, bars, dim(f"{total} jobs{more}"))


async def look_on(client: Client, queue: str, id: str, *, as_json: bool) -> str:
    """Show a batch until it is reported; give its end state, `UnknownBatch` if it is deleted before."""
    sight = BatchSight(await client.batch(queue, id))
    async with aclosing(client.watch_batch(queue, id)) as events:
        if as_json:
            await _each(events, sight, _print_event)
        elif sys.stderr.isatty():
            await _draw(events, sight)
        else:
            await _each(events, sight, _Lines(sight).tell)
    if sight.state == "deleted":
        raise UnknownBatch(queue, id)
    if not as_json:
        say(sight.line())
        if sight.message:
            say(sight.message, err=True)
    return sight.state


async def _each(
    events: AsyncIterator[BatchEvent], sight: BatchSight, tell: Callable[[BatchEvent], None]
) -> None:
    async for event in events:
        sight.see(event)
        tell(event)


def _print_event(event: BatchEvent) -> None:
    typer.echo(event.model_dump_json(exclude={"id"} if event.id is None else set()))


class _Lines:
    """Tells each change in a line, once."""

    def __init__(self, sight: BatchSight) -> None:
        self._sight = sight
        self._told = ""

    def tell(self, _event: BatchEvent) -> None:
        line = self._sight.line()
        if line != self._told and self._sight.state not in ("completed", "failed", "deleted"):
            say(line, err=True)
            self._told = line


async def _draw(events: AsyncIterator[BatchEvent], sight: BatchSight) -> None:
    with Live(sight, console=console(err=True), transient=True, auto_refresh=False) as live:
        await _each(events, sight, lambda _event: live.refresh())
