"""The commands that stay: watch a job, sit at a session, and look at the whole queue at a glance."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from maitred.cli import options
from maitred.cli.calling import ask
from maitred.cli.exits import expected
from maitred.cli.given import file_beside, submitter_of
from maitred.cli.waiting import INTERRUPTED, exit_status
from maitred.client import Client
from maitred.wire import JobDocument

commands = typer.Typer()

# What draws takes long to import, and other commands should not wait for it.


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
    """Watch a job until it has ended: its place and why it waits, then its run and what it prints.

    Ends with the job's exit status.
    """
    from rich.console import Console  # noqa: PLC0415

    from maitred.cli import watching  # noqa: PLC0415

    async def look_on(client: Client) -> JobDocument:
        job = await client.job(queue, id, version)
        if as_json:
            return await watching.watch_as_json(client, job)
        # Times are told by the server's clock; this one may be wrong.
        sight = watching.Sight(job, (await client.queue(queue)).now)
        if console:
            return await watching.watch_on_terminal(client, console, sight, heard)
        return await watching.watch_in_lines(client, sight, heard)

    console = Console(stderr=True, highlight=False) if sys.stderr.isatty() and not as_json else None
    heard = watching.Heard(console)
    try:
        ended = ask(server, data, look_on)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    finally:
        heard.close()
    if not as_json:
        watching.print_end(ended, heard=heard.anything)
    raise typer.Exit(exit_status(ended))


@commands.command()
@expected
def shell(
    command: Annotated[
        list[str] | None, typer.Argument(help="After --, a program and its arguments; else a shell.")
    ] = None,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    submitter: Annotated[
        str | None, typer.Option("--as", help="user:ID or team:ID; else your login name.")
    ] = None,
    file: Annotated[
        list[Path] | None, typer.Option("--file", "-f", help="A file to lay beside the program.")
    ] = None,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
) -> None:
    """Open a session: a program, or a shell, in a terminal on a worker; it starts at once or is denied.

    A connection that breaks is made anew for 30 seconds. Ends with the program's exit status.
    """
    from maitred.cli import shell as terminal  # noqa: PLC0415

    frame = {
        "submitter": submitter_of("--as", submitter),
        "command": command or terminal.SHELL,
        "files": dict(file_beside(path) for path in file or []),
    }
    try:
        status = terminal.open_shell(server, data, queue, frame)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    raise typer.Exit(status)


@commands.command()
@expected
def top(
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    once: Annotated[bool, typer.Option("--once", help="Print one frame and end.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=500, help="Rows of each table.")] = 20,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: Annotated[bool, typer.Option("--json", help="Print one frame as JSON.")] = False,
) -> None:
    """Look on a queue: its slots and classes, what runs, and who is next; anew every second until Ctrl-C."""
    from rich.console import Console  # noqa: PLC0415

    from maitred.cli import top as view  # noqa: PLC0415

    if sys.stdout.isatty() and not (once or as_json):
        try:
            ask(server, data, lambda client: view.look_on(client, queue, limit))
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
    frame = ask(server, data, lambda client: view.look(client, queue, limit))
    if as_json:
        typer.echo(frame.as_json())
    else:
        console = Console(highlight=False)
        console.print(view.show(frame, limit, width=console.width))
