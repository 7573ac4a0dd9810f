"""The commands that stay: watch a job, sit at a session, and look at the whole queue at a glance."""

import sys
from typing import Annotated, get_args

import typer

from maitred.cli import options
from maitred.cli.asking import ID
from maitred.cli.calling import InQueue, Server, Where
from maitred.cli.command import Commands
from maitred.cli.exits import INTERRUPTED
from maitred.cli.given import files_beside, submitter_of
from maitred.cli.guessing import queue_names
from maitred.cli.printing import console, say
from maitred.cli.waiting import exit_status, left_alone
from maitred.client import Client
from maitred.wire import EventName, JobDocument

commands = Commands("Jobs")
glances = Commands("Queues")

# What draws takes long to import, and other commands should not wait for it.


@commands.add(f"maitred watch {ID}", f"maitred watch {ID} > its-output.txt && echo well")
def watch(where: InQueue, id: options.JobId, *, version: options.Version = None) -> None:
    """Watch a job until it has ended: its place and why it waits, then its run and what it prints.

    Ends with the job's exit status. Ctrl-C ends the watching, not the job.
    """
    from maitred.cli import watching  # noqa: PLC0415

    job: JobDocument | None = None

    async def look_on(client: Client) -> JobDocument:
        nonlocal job
        job = await client.job(where.queue, id, version)
        if where.as_json:
            return await watching.watch_as_json(client, job)
        # Times are told by the server's clock; this one may be wrong.
        sight = watching.Sight(job, (await client.queue(where.queue)).now)
        try:
            if screen:
                return await watching.watch_on_terminal(client, screen, sight, heard)
            return await watching.watch_in_lines(client, sight, heard)
        finally:
            job = sight.job

    screen = console(err=True) if sys.stderr.isatty() and not where.as_json else None
    heard = watching.Heard(screen)
    try:
        ended = where.ask(look_on)
    except KeyboardInterrupt:
        if job is not None:
            say(left_alone(job), err=True)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        heard.close()
    if not where.as_json:
        watching.print_end(ended, heard=heard.anything)
    raise typer.Exit(exit_status(ended))


@commands.add("maitred shell", "maitred shell -f data.csv -- python3 -i")
def shell(
    at: Server,
    command: Annotated[
        list[str] | None, typer.Argument(help="After --, a program and its arguments; else a shell.")
    ] = None,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    submitter: options.Submitter = None,
    file: options.Files = None,
) -> None:
    """Open a session: a program, or a shell, in a terminal on a worker; it starts at once or is denied.

    A connection that breaks is made anew for 30 seconds. Ends with the program's exit status.
    """
    from maitred.cli import shell as terminal  # noqa: PLC0415

    frame = {
        "submitter": submitter_of("--as", submitter),
        "command": command or terminal.SHELL,
        "files": files_beside(file or []),
    }
    raise typer.Exit(terminal.open_shell(at, queue, frame))


@glances.add("maitred top", "maitred top --queue render --once")
def top(
    where: InQueue,
    *,
    once: Annotated[bool, typer.Option("--once", help="Print one frame and end.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=500, help="Rows of each table.")] = 20,
) -> None:
    """Look on a queue: its slots and classes, what runs, and who is next; anew every second until Ctrl-C.

    With --json, or where no terminal is, it is one frame.
    """
    from maitred.cli import top as view  # noqa: PLC0415

    if sys.stdout.isatty() and not (once or where.as_json):
        where.ask(lambda client: view.look_on(client, where.queue, limit))
    frame = where.ask(lambda client: view.look(client, where.queue, limit))
    where.print(frame.document(), lambda _: view.print_frame(frame, limit))


@glances.add("maitred events", "maitred events --queue render --event state --event batch --json | jq -r .id")
def events(
    where: Where,
    *,
    queue: Annotated[
        list[str] | None,
        typer.Option("--queue", "-q", autocompletion=queue_names, help="Only of this queue; again for more."),
    ] = None,
    event: Annotated[
        list[str] | None,
        typer.Option("--event", help=f"Only these: {', '.join(get_args(EventName))}; again for more."),
    ] = None,
    last: Annotated[
        str | None, typer.Option("--after", help="Go on after this event: its `event_id`, as --json has it.")
    ] = None,
) -> None:
    """Tell what happens in all queues, a line for each event, until Ctrl-C."""
    from maitred.cli import telling  # noqa: PLC0415

    names = telling.event_names(event or [])
    where.ask(lambda client: telling.tell_events(client, queue or [], names, last, as_json=where.as_json))
