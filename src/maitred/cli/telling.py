"""The command about callbacks: the tries at those of a job."""

from typing import Annotated

import typer

from maitred.cli import options
from maitred.cli.calling import ask
from maitred.cli.exits import expected
from maitred.cli.printing import clock, console, plain_row, print_json, say, table

commands = typer.Typer()


@commands.command(epilog="For example: maitred deliveries FL9_fz27Ce9QZuqTzKP9ftXe")
@expected
def deliveries(
    id: options.JobId,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    version: Annotated[int | None, typer.Option("--version", min=1, help="An older version.")] = None,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Show each try to tell a job's response address of it, and what was answered."""
    page = ask(server, data, lambda client: client.deliveries(queue, id, version))
    if as_json:
        print_json(page)
        return
    if not page.items:
        say("Nothing was sent yet.")
        return
    rows = table("at", "message", "try", "answer", "said", "again")
    for each in page.items:
        cells = (clock(each.at), each.type, each.attempt, each.answer, each.said, clock(each.next_at) or "")
        rows.add_row(*plain_row(cells))
    console().print(rows)
