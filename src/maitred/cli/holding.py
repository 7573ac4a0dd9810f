"""The commands that hold and let go: hold, resume, retry, priority and reconcile."""

from typing import Annotated

import typer

from maitred.cli import options
from maitred.cli.calling import ask
from maitred.cli.exits import expected
from maitred.cli.given import submitter_of
from maitred.cli.printing import print_job, print_profile, print_queue, print_reconcile, print_submitter
from maitred.errors import ConfigError

commands = typer.Typer()

_Job = Annotated[str | None, typer.Argument(metavar="[ID]", help="The job's id.")]
_Submitter = Annotated[
    str | None, typer.Option("--submitter", help="All of a submitter: user:ID or team:ID.")
]
_Profile = Annotated[str | None, typer.Option("--profile", help="All of a profile.")]


@commands.command(epilog="For example: maitred hold --submitter user:7 --reason 'asks for too much'")
@expected
def hold(
    id: _Job = None,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    submitter: _Submitter = None,
    profile: _Profile = None,
    reason: options.Reason = "",
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Hold a job, or all of a submitter or profile: out of line, until it is resumed."""
    if sum(given is not None for given in (id, submitter, profile)) != 1:
        raise ConfigError("Say what to hold: a job's ID, --submitter or --profile.")
    if id is not None:
        print_job(ask(server, data, lambda client: client.hold_job(queue, id, reason)), as_json=as_json)
    elif profile is not None:
        held = ask(server, data, lambda client: client.hold_profile(queue, profile, reason))
        print_profile(held, as_json=as_json)
    else:
        who = submitter_of("--submitter", submitter)
        print_submitter(
            ask(server, data, lambda client: client.hold_submitter(queue, who["type"], who["id"], reason)),
            who,
            as_json=as_json,
        )


@commands.command(epilog="For example: maitred resume, or maitred resume --profile nightly")
@expected
def resume(
    id: _Job = None,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    submitter: _Submitter = None,
    profile: _Profile = None,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Let a paused queue start jobs again, or what is held go on: a job, a submitter or a profile."""
    if sum(given is not None for given in (id, submitter, profile)) > 1:
        raise ConfigError(
            "Say one thing to resume: a job's ID, --submitter, --profile, or nothing: the queue."
        )
    if id is not None:
        print_job(ask(server, data, lambda client: client.resume_job(queue, id)), as_json=as_json)
    elif profile is not None:
        resumed = ask(server, data, lambda client: client.resume_profile(queue, profile))
        print_profile(resumed, as_json=as_json)
    elif submitter is not None:
        who = submitter_of("--submitter", submitter)
        print_submitter(
            ask(server, data, lambda client: client.resume_submitter(queue, who["type"], who["id"])),
            who,
            as_json=as_json,
        )
    else:
        print_queue(ask(server, data, lambda client: client.resume(queue)), as_json=as_json)


@commands.command(epilog="For example: maitred retry FL9_fz27Ce9QZuqTzKP9ftXe")
@expected
def retry(
    id: options.JobId,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Let a failed job go on at the stage that failed."""
    print_job(ask(server, data, lambda client: client.retry(queue, id)), as_json=as_json)


@commands.command(epilog="For example: maitred priority FL9_fz27Ce9QZuqTzKP9ftXe 2")
@expected
def priority(
    id: options.JobId,
    number: Annotated[int, typer.Argument(metavar="N", help="0..99, lower first.")],
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Give a waiting job another priority."""
    print_job(ask(server, data, lambda client: client.prioritise(queue, id, number)), as_json=as_json)


@commands.command()
@expected
def reconcile(
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Rebuild a queue's line from its ledger, where that is kept elsewhere, and tell what was done."""
    print_reconcile(ask(server, data, lambda client: client.reconcile(queue)), as_json=as_json)
