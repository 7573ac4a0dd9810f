"""The commands about batches: `maitred batch submit`, `add`, `seal`, `show`, `watch`, `report` and so on."""

import json
from typing import Annotated, Any

import typer

from maitred.cli import options
from maitred.cli.batch_printing import print_added, print_batch, print_batches, print_report
from maitred.cli.calling import ask
from maitred.cli.exits import expected
from maitred.cli.given import batch_payload, job_bodies, named, pair, seconds, submitter_of
from maitred.cli.waiting import INTERRUPTED
from maitred.client import Client
from maitred.errors import MaitredError
from maitred.wire import JobDocument

commands = typer.Typer(
    help="Jobs that are submitted together, and have one report.",
    no_args_is_help=True,
    epilog="For example: maitred batch submit manifest.csv --submitter user:7 --handler grade",
)

AT_ONCE = 1000

_BatchId = Annotated[str, typer.Argument(metavar="BATCH", help="The batch's id.")]
_JOBS = "Bodies of jobs in JSON, as a list or one on each line; - reads them from the input."


@commands.command(epilog="For example: maitred batch submit manifest.csv --submitter user:7 --handler grade")
@expected
def submit(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            help="A manifest: a file, - for the input, or an address. None: an open batch.",
        ),
    ] = None,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    submitter: Annotated[
        str | None, typer.Option("--submitter", "--as", help="user:ID or team:ID; else your login name.")
    ] = None,
    jobs: Annotated[
        bool, typer.Option("--jobs", help="FILE holds bodies of jobs in JSON, not a manifest.")
    ] = False,
    external_id: Annotated[
        str | None,
        typer.Option("--external-id", help="Your name for it; sent again, no second batch is made."),
    ] = None,
    manifest_type: Annotated[
        str | None,
        typer.Option(
            "--type", help="single-file, object-manifest, manifest-of-containers or manifest-of-manifests."
        ),
    ] = None,
    handler: Annotated[str | None, typer.Option("--handler", help="The handler of each row.")] = None,
    arg: Annotated[
        list[str] | None, typer.Option("--arg", help="name=value for every row; JSON, or else text.")
    ] = None,
    profile: Annotated[str | None, typer.Option("--profile", help="A profile of the queue.")] = None,
    response_type: Annotated[
        str | None, typer.Option("--response-type", help="Of the report that is sent: json, xml or turtle.")
    ] = None,
    response_url: Annotated[
        str | None, typer.Option("--response-url", help="An http address that the report is sent to.")
    ] = None,
    mode: Annotated[str | None, typer.Option("--mode", help="add, update or reset.")] = None,
    erc: Annotated[list[str] | None, typer.Option("--erc", help="who=…, what=…, when=… or where=…")] = None,
    priority: Annotated[int | None, typer.Option("--priority", help="0..99, lower first.")] = None,
    bulk: Annotated[bool, typer.Option("--bulk", help="Yield to all others.")] = False,
    class_: Annotated[
        str | None, typer.Option("--class", help="One of the queue's duration classes.")
    ] = None,
    duration: Annotated[
        str | None, typer.Option("--duration", help="How long each may run, such as 5s or 2m.")
    ] = None,
    leave_open: Annotated[
        bool, typer.Option("--open", help="Let jobs be added until `maitred batch seal`.")
    ] = False,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Submit a batch: a manifest whose rows become jobs, a list of jobs, or none yet."""
    given: dict[str, Any] = {
        "submitter": submitter_of("--submitter", submitter),
        "external_id": external_id,
        "manifest_type": manifest_type,
        "profile_name": profile,
        "response_type": response_type,
        "response_url": response_url,
        "submission_mode": mode,
        "erc": dict(named("--erc", text) for text in erc or []) or None,
        "run": _run(handler, arg or []),
        "priority": priority,
        "bulk": bulk or None,
        "class": class_,
        "duration": None if duration is None else seconds("--duration", duration),
        "seal": False if leave_open or file is None else None,
        **batch_payload(file, jobs=jobs),
    }
    body = {name: value for name, value in given.items() if value is not None}
    print_batch(ask(server, data, lambda client: client.submit_batch(queue, body)), as_json=as_json)


def _run(handler: str | None, args: list[str]) -> dict[str, Any] | None:
    run: dict[str, Any] = {} if handler is None else {"handler": handler}
    if args:
        run["args"] = dict(pair(arg) for arg in args)
    return run or None


@commands.command(epilog="For example: maitred batch add bid0000000001 jobs.json")
@expected
def add(
    id: _BatchId,
    file: Annotated[str, typer.Argument(metavar="FILE", help=_JOBS)],
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Add jobs to an open batch; a key that it has is passed over. Ends with 1 if one was refused."""
    bodies = job_bodies(file)

    async def adding(client: Client) -> list[JobDocument | MaitredError]:
        answers: list[JobDocument | MaitredError] = []
        for first in range(0, len(bodies), AT_ONCE):
            answers += await client.add_jobs(queue, id, bodies[first : first + AT_ONCE])
        return answers

    answers = ask(server, data, adding)
    print_added(id, answers, as_json=as_json)
    if any(isinstance(answer, MaitredError) for answer in answers):
        raise typer.Exit(1)


@commands.command(epilog="For example: maitred batch seal bid0000000001")
@expected
def seal(
    id: _BatchId,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Say that the last job is in; it is reported when all have ended."""
    print_batch(ask(server, data, lambda client: client.seal_batch(queue, id)), as_json=as_json)


@commands.command(epilog="For example: maitred batch show bid0000000001")
@expected
def show(
    id: _BatchId,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Show a batch: its state, and how many of its jobs are where."""
    print_batch(ask(server, data, lambda client: client.batch(queue, id)), as_json=as_json)


@commands.command("list", epilog="For example: maitred batch list --state failed")
@expected
def list_(
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    state: Annotated[str | None, typer.Option("--state", help="Such as processing or failed.")] = None,
    external_id: Annotated[
        str | None, typer.Option("--external-id", help="The one that was submitted by this name.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=500, help="How many at most.")] = 20,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """List batches, newest first."""
    query = {"state": state, "external_id": external_id, "limit": str(limit)}
    asked = {name: value for name, value in query.items() if value is not None}
    print_batches(ask(server, data, lambda client: client.batches(queue, **asked)), as_json=as_json)


@commands.command(epilog="For example: maitred batch watch bid0000000001")
@expected
def watch(
    id: _BatchId,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: Annotated[bool, typer.Option("--json", help="Print each event as a line of JSON.")] = False,
) -> None:
    """Watch a batch until it is reported, with a bar for each state. Ends with 0 if it completed, else 1."""
    # What draws takes long to import, and other commands should not wait for it.
    from maitred.cli import batch_watching  # noqa: PLC0415

    try:
        state = ask(server, data, lambda client: batch_watching.look_on(client, queue, id, as_json=as_json))
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    raise typer.Exit(0 if state == "completed" else 1)


@commands.command(epilog="For example: maitred batch report bid0000000001 --json")
@expected
def report(
    id: _BatchId,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Show the last report of a batch: what completed, what failed and why, what was deleted."""
    print_report(ask(server, data, lambda client: client.report(queue, id)), as_json=as_json)


@commands.command(epilog="For example: maitred batch hold bid0000000001 --reason 'wrong collection'")
@expected
def hold(
    id: _BatchId,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    reason: options.Reason = "",
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Hold a batch: none of its jobs starts, and running ones stop before their next stage."""
    print_batch(ask(server, data, lambda client: client.hold_batch(queue, id, reason)), as_json=as_json)


@commands.command(epilog="For example: maitred batch resume bid0000000001")
@expected
def resume(
    id: _BatchId,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Let a held batch go on."""
    print_batch(ask(server, data, lambda client: client.resume_batch(queue, id)), as_json=as_json)


@commands.command(epilog="For example: maitred batch retry bid0000000001")
@expected
def retry(
    id: _BatchId,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Let the failed jobs of a batch go on, each at the stage that failed."""
    retried = ask(server, data, lambda client: client.retry_batch(queue, id))
    typer.echo(json.dumps({"retried": retried}) if as_json else f"Retried {retried} of {id}.")


@commands.command("update-report", epilog="For example: maitred batch update-report bid0000000001")
@expected
def update_report(
    id: _BatchId,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Ask for a report of what changed since the last one, when retried jobs have ended."""
    print_batch(ask(server, data, lambda client: client.update_report(queue, id)), as_json=as_json)


@commands.command("rm", epilog="For example: maitred batch rm bid0000000001")
@expected
def remove(
    id: _BatchId,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Delete a batch with its jobs, all of which have ended."""
    ask(server, data, lambda client: client.remove_batch(queue, id))
    typer.echo(json.dumps({"deleted": id}) if as_json else f"Deleted {id}.")
