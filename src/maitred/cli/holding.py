"""The commands that hold and let go: of a job, a submitter or a profile; and of a paused queue."""

from typing import Annotated

import typer

from maitred.cli import options
from maitred.cli.asking import ID
from maitred.cli.calling import InQueue
from maitred.cli.command import Commands
from maitred.cli.given import submitter_of
from maitred.cli.printing import print_job, print_queue
from maitred.cli.queue_printing import print_profile, print_submitter
from maitred.errors import ConfigError

commands = Commands("Queues")

_Job = Annotated[str | None, typer.Argument(metavar="[ID]", help="The job's id.")]
_Submitter = Annotated[
    str | None, typer.Option("--submitter", help="All of a submitter: user:ID or team:ID.")
]
_Profile = Annotated[str | None, typer.Option("--profile", help="All of a profile.")]


@commands.add(f"maitred hold {ID}", "maitred hold --submitter user:7 --reason 'asks for too much'")
def hold(
    where: InQueue,
    id: _Job = None,
    *,
    submitter: _Submitter = None,
    profile: _Profile = None,
    reason: options.Reason = "",
) -> None:
    """Hold a job, or all of a submitter or profile: out of line, until it is resumed."""
    if sum(given is not None for given in (id, submitter, profile)) != 1:
        raise ConfigError("Say what to hold: a job's ID, --submitter or --profile.")
    queue = where.queue
    if id is not None:
        where.tell(lambda client: client.hold_job(queue, id, reason), print_job)
    elif profile is not None:
        where.tell(lambda client: client.hold_profile(queue, profile, reason), print_profile)
    elif submitter is not None:
        kind, name = submitter_of("--submitter", submitter).values()
        where.tell(
            lambda client: client.hold_submitter(queue, kind, name, reason),
            lambda held: print_submitter(held, submitter),
        )


@commands.add("maitred resume", f"maitred resume {ID}", "maitred resume --profile nightly")
def resume(
    where: InQueue, id: _Job = None, *, submitter: _Submitter = None, profile: _Profile = None
) -> None:
    """Let a paused queue start jobs again, or what is held go on: a job, a submitter or a profile."""
    if sum(given is not None for given in (id, submitter, profile)) > 1:
        raise ConfigError(
            "Say one thing to resume: a job's ID, --submitter, --profile, or nothing: the queue."
        )
    queue = where.queue
    if id is not None:
        where.tell(lambda client: client.resume_job(queue, id), print_job)
    elif profile is not None:
        where.tell(lambda client: client.resume_profile(queue, profile), print_profile)
    elif submitter is not None:
        kind, name = submitter_of("--submitter", submitter).values()
        where.tell(
            lambda client: client.resume_submitter(queue, kind, name),
            lambda resumed: print_submitter(resumed, submitter),
        )
    else:
        where.tell(lambda client: client.resume(queue), print_queue)
