"""The commands about batches: `maitred batch submit`, `add`, `seal`, `show`, `watch`, `report` and so on."""

from typing import Annotated, Any

import typer

from maitred.cli import options
from maitred.cli.batch_printing import (
    answers_document,
    any_refused,
    print_answers,
    print_batch,
    print_batches,
    print_report,
)
from maitred.cli.calling import InQueue
from maitred.cli.command import Commands
from maitred.cli.exits import INTERRUPTED
from maitred.cli.given import batch_payload, job_bodies, named, pair, seconds, submitter_of
from maitred.cli.printing import say
from maitred.client import Client

commands = Commands(help="Jobs that are submitted together, and have one report.", no_args_is_help=True)
BID = "bid0000000001"

_BatchId = Annotated[str, typer.Argument(metavar="BATCH", help="The batch's id.")]
_JOBS = "Bodies of jobs in JSON, as a list or one on each line; - reads them from the input."


@commands.add(
    "maitred batch submit manifest.csv --submitter user:7 --handler grade",
    "maitred batch submit jobs.json --jobs --external-id homework-3",
    "maitred batch submit --open",
)
def submit(
    where: InQueue,
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            help="A manifest: a file, - for the input, or an address. None: an open batch.",
        ),
    ] = None,
    *,
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
    handler: options.Handler = None,
    arg: options.Args = None,
    profile: Annotated[str | None, typer.Option("--profile", help="A profile of the queue.")] = None,
    response_type: Annotated[
        str | None, typer.Option("--response-type", help="Of the report that is sent: json, xml or turtle.")
    ] = None,
    response_url: Annotated[
        str | None, typer.Option("--response-url", help="An http address that the report is sent to.")
    ] = None,
    mode: Annotated[str | None, typer.Option("--mode", help="add, update or reset.")] = None,
    erc: Annotated[list[str] | None, typer.Option("--erc", help="who=…, what=…, when=… or where=…")] = None,
    priority: options.Priority = None,
    bulk: options.Bulk = False,
    class_: options.Class = None,
    duration: options.Duration = None,
    leave_open: Annotated[
        bool, typer.Option("--open", help="Let jobs be added until `maitred batch seal`.")
    ] = False,
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
    where.tell(lambda client: client.submit_batch(where.queue, body), print_batch)


def _run(handler: str | None, args: list[str]) -> dict[str, Any] | None:
    run: dict[str, Any] = {} if handler is None else {"handler": handler}
    if args:
        run["args"] = dict(pair(arg) for arg in args)
    return run or None


@commands.add(f"maitred batch add {BID} jobs.json", f"make-jobs | maitred batch add {BID} -")
def add(
    where: InQueue,
    id: _BatchId,
    file: Annotated[str, typer.Argument(metavar="FILE", help=_JOBS)],
) -> None:
    """Add jobs to an open batch; a key that it has is passed over. Ends with 1 if one was refused."""
    bodies = job_bodies(file)
    answers = where.ask(lambda client: client.add_jobs(where.queue, id, bodies))
    where.print(answers_document(answers), lambda _: print_answers(id, answers))
    if any_refused(answers):
        raise typer.Exit(1)


@commands.add(f"maitred batch seal {BID}")
def seal(where: InQueue, id: _BatchId) -> None:
    """Say that the last job is in; it is reported when all have ended."""
    where.tell(lambda client: client.seal_batch(where.queue, id), print_batch)


@commands.add(f"maitred batch show {BID}")
def show(where: InQueue, id: _BatchId) -> None:
    """Show a batch: its state, and how many of its jobs are where."""
    where.tell(lambda client: client.batch(where.queue, id), print_batch)


@commands.add("maitred batch list --state failed", "maitred batch list --external-id homework-3", name="list")
def list_(
    where: InQueue,
    *,
    state: Annotated[str | None, typer.Option("--state", help="Such as processing or failed.")] = None,
    external_id: Annotated[
        str | None, typer.Option("--external-id", help="The one that was submitted by this name.")
    ] = None,
    limit: options.Limit = options.DEFAULT_LIMIT,
    cursor: options.Cursor = None,
) -> None:
    """List batches, newest first."""
    query = {"state": state, "external_id": external_id, "cursor": cursor}
    asked = {name: value for name, value in query.items() if value is not None} | {"limit": str(limit)}
    where.tell(lambda client: client.batches(where.queue, **asked), print_batches)


@commands.add(f"maitred batch watch {BID}")
def watch(where: InQueue, id: _BatchId) -> None:
    """Watch a batch until it is reported, with a bar for each state. Ends with 0 if it completed, else 1."""
    # What draws takes long to import, and other commands should not wait for it.
    from maitred.cli import batch_watching  # noqa: PLC0415

    try:
        state = where.ask(
            lambda client: batch_watching.look_on(client, where.queue, id, as_json=where.as_json)
        )
    except KeyboardInterrupt:
        say(f"maitred: {id} goes on; `maitred batch watch {id}` looks on again.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    raise typer.Exit(0 if state == "completed" else 1)


@commands.add(f"maitred batch report {BID}", f"maitred batch report {BID} --json | jq .failed")
def report(where: InQueue, id: _BatchId) -> None:
    """Show the last report of a batch: what completed, what failed and why, what was deleted."""
    where.tell(lambda client: client.report(where.queue, id), print_report)


@commands.add(f"maitred batch hold {BID} --reason 'wrong collection'")
def hold(where: InQueue, id: _BatchId, *, reason: options.Reason = "") -> None:
    """Hold a batch: none of its jobs starts, and running ones stop before their next stage."""
    where.tell(lambda client: client.hold_batch(where.queue, id, reason), print_batch)


@commands.add(f"maitred batch resume {BID}")
def resume(where: InQueue, id: _BatchId) -> None:
    """Let a held batch go on."""
    where.tell(lambda client: client.resume_batch(where.queue, id), print_batch)


@commands.add(f"maitred batch retry {BID}")
def retry(where: InQueue, id: _BatchId) -> None:
    """Let the failed jobs of a batch go on, each at the stage that failed."""

    async def retrying(client: Client) -> dict[str, Any]:
        return {"retried": await client.retry_batch(where.queue, id)}

    where.tell(retrying, lambda done: say(f"Retried {done['retried']} of {id}."))


@commands.add(f"maitred batch update-report {BID}", name="update-report")
def update_report(where: InQueue, id: _BatchId) -> None:
    """Ask for a report of what changed since the last one, when retried jobs have ended."""
    where.tell(lambda client: client.update_report(where.queue, id), print_batch)


@commands.add(f"maitred batch rm {BID}", name="rm")
def remove(where: InQueue, id: _BatchId) -> None:
    """Delete a batch with its jobs, all of which have ended."""

    async def removing(client: Client) -> dict[str, Any]:
        await client.remove_batch(where.queue, id)
        return {"deleted": id}

    where.tell(removing, lambda _: say(f"Deleted {id}."))
