"""The commands about one job, or some: show and list them, move them, give them less time, end them."""

from typing import Annotated, Any

import typer

from maitred.cli import options
from maitred.cli.calling import InQueue
from maitred.cli.command import Commands
from maitred.cli.given import named, seconds
from maitred.cli.printing import print_job, say
from maitred.cli.queue_printing import print_jobs
from maitred.client import Client

commands = Commands("Jobs")
ID = "FL9_fz27Ce9QZuqTzKP9ftXe"


@commands.add(f"maitred show {ID}", f"maitred show {ID} --json | jq .estimate")
def show(where: InQueue, id: options.JobId, *, version: options.Version = None) -> None:
    """Show a job: where it is, why it waits, what became of it."""
    where.tell(lambda client: client.job(where.queue, id, version), print_job)


@commands.add(
    "maitred jobs --state failed", "maitred jobs --submitter user:ada --metadata course=logic --limit 100"
)
def jobs(
    where: InQueue,
    *,
    state: Annotated[str | None, typer.Option("--state", help="Such as pending, held or failed.")] = None,
    key: Annotated[str | None, typer.Option("--key", help="Those with this key.")] = None,
    submitter: Annotated[str | None, typer.Option("--submitter", help="user:ID or team:ID.")] = None,
    batch: Annotated[str | None, typer.Option("--batch", help="Those of a batch.")] = None,
    metadata: Annotated[
        list[str] | None, typer.Option("--metadata", help="name=text, as they were submitted with.")
    ] = None,
    limit: options.Limit = options.DEFAULT_LIMIT,
    cursor: options.Cursor = None,
) -> None:
    """List jobs, also those that have ended."""
    given = {"state": state, "key": key, "submitter": submitter, "batch": batch, "cursor": cursor}
    asked = {name: value for name, value in given.items() if value is not None} | {"limit": str(limit)}
    asked |= {f"metadata.{name}": text for name, text in map(_metadata, metadata or [])}
    where.tell(lambda client: client.jobs(where.queue, **asked), print_jobs)


def _metadata(text: str) -> tuple[str, str]:
    return named("--metadata", text)


@commands.add(f"maitred release {ID}")
def release(where: InQueue, id: options.JobId, *, nonce: options.Nonce = None) -> None:
    """Move a waiting job to the front."""
    where.tell(lambda client: client.release(where.queue, id, nonce), print_job)


@commands.add(f"maitred delay {ID}")
def delay(where: InQueue, id: options.JobId, *, nonce: options.Nonce = None) -> None:
    """Move a waiting job behind all others of its band and priority."""
    where.tell(lambda client: client.delay(where.queue, id, nonce), print_job)


@commands.add(f"maitred shorten {ID} 5s")
def shorten(
    where: InQueue,
    id: options.JobId,
    duration: Annotated[str, typer.Argument(metavar="DURATION", help="Such as 5s or 2m, from its start on.")],
) -> None:
    """Let a waiting or running job take only so long; it stops if it has run longer already."""
    length = seconds("DURATION", duration)
    where.tell(lambda client: client.shorten(where.queue, id, length), print_job)


@commands.add(f"maitred priority {ID} 2")
def priority(
    where: InQueue,
    id: options.JobId,
    number: Annotated[int, typer.Argument(metavar="N", help="0..99, lower first.")],
) -> None:
    """Give a waiting job another priority."""
    where.tell(lambda client: client.prioritise(where.queue, id, number), print_job)


@commands.add(f"maitred retry {ID}")
def retry(where: InQueue, id: options.JobId) -> None:
    """Let a failed job go on at the stage that failed."""
    where.tell(lambda client: client.retry(where.queue, id), print_job)


@commands.add(f"maitred cancel {ID} --reason 'wrong branch'")
def cancel(where: InQueue, id: options.JobId, *, reason: options.Reason = "") -> None:
    """End a job that has not ended, and keep its record."""
    where.tell(lambda client: client.cancel(where.queue, id, reason), print_job)


@commands.add(f"maitred rm {ID}", name="rm")
def remove(where: InQueue, id: options.JobId) -> None:
    """Delete a job in any state, with all its versions."""

    async def removing(client: Client) -> dict[str, Any]:
        await client.remove(where.queue, id)
        return {"deleted": id}

    where.tell(removing, lambda _: say(f"Deleted {id}."))
