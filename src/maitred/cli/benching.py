"""The command that measures: bench."""

import sys
from typing import Annotated

import typer

from maitred.cli import options
from maitred.cli.calling import Server, Where
from maitred.cli.command import Commands
from maitred.cli.given import seconds, submitter_of
from maitred.cli.printing import say
from maitred.errors import ConfigError

commands = Commands("Running it")


@commands.add(
    "maitred bench", "maitred bench --jobs 10000 --slots 16", "maitred bench --server 127.0.0.1:7500"
)
def bench(
    at: Server,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    jobs: Annotated[int, typer.Option("--jobs", min=1, max=100_000, help="How many to submit.")] = 1000,
    clients: Annotated[
        int, typer.Option("--clients", min=1, max=256, help="How many submit at the same time.")
    ] = 8,
    slots: Annotated[
        int, typer.Option("--slots", min=1, max=1024, help="Of the private house: how many run at once.")
    ] = 8,
    handler: Annotated[
        str | None, typer.Option("--handler", help="Of a given server: a handler; else it runs `true`.")
    ] = None,
    submitter: options.Submitter = None,
    within: Annotated[
        str, typer.Option("--within", help="When to give up, such as 5m; all is deleted then too.")
    ] = "5m",
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask before a given server is used.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Measure how fast jobs that do nothing are taken and run, and how long they wait.

    Without --server it is a private house with an embedded store, which leaves nothing behind: all jobs are
    submitted before the first one starts. A given server gets them as one batch, among all others that wait
    there; when they have ended they are deleted. Ends with 1 if not all of them completed in time.
    """
    from maitred.cli.bench import Bench, print_figures, private_house  # noqa: PLC0415

    who, most = submitter_of("--as", submitter), seconds("--within", within)
    if at.server:
        _warn(at.server, queue, jobs, yes=yes)
        run = {"handler": handler} if handler else {"command": ["true"]}
        measured = Bench(queue, jobs, clients, who, most)
        figures = Where(server=at.server).ask(lambda client: measured.run(client, run))
    else:
        measured = Bench(options.DEFAULT_QUEUE, jobs, clients, who, most, own=True)
        with private_house(slots) as house:
            figures = house.ask(lambda client: measured.run(client, {"handler": "nothing"}))
    Where(as_json=as_json).print(figures, print_figures)
    if figures["completed"] < jobs:
        raise typer.Exit(1)


def _warn(server: str, queue: str, jobs: int, *, yes: bool) -> None:
    """Say what a given server will have to bear; go on only if that is wanted."""
    say(f"maitred: {jobs} jobs go into {queue!r} at {server}, where others may have to wait.", err=True)
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError("Say --yes: there is nobody to ask whether this server may be used.")
    typer.confirm("Go on?", abort=True, err=True)
