"""The commands about queues: who waits and what runs in them, who works for them, and whether all is well."""

from typing import Annotated

import typer

from maitred.cli import options
from maitred.cli.calling import InQueue, Where
from maitred.cli.command import Commands
from maitred.cli.given import submitter_of
from maitred.cli.printing import print_queue, say
from maitred.cli.queue_printing import (
    print_check,
    print_line,
    print_queues,
    print_reconcile,
    print_running,
    print_submitter,
    print_workers,
)
from maitred.client import Client
from maitred.wire import JobDocument, OthersJob, Page, QueueDocument, SubmitterDocument

commands = Commands("Queues")


@commands.add(
    "maitred line", "maitred line --queue render -n 100", "maitred line --json | jq -r .items[].key"
)
def line(
    where: InQueue, *, limit: options.Limit = options.DEFAULT_LIMIT, cursor: options.Cursor = None
) -> None:
    """Show the queue in one line, and who waits, in line order."""

    async def look(client: Client) -> tuple[Page[JobDocument | OthersJob], QueueDocument]:
        return await client.line(where.queue, limit, cursor), await client.queue(where.queue)

    page, queue = where.ask(look)
    where.print(page, lambda _: print_line(page, queue))


@commands.add("maitred running", "maitred running --queue render --json")
def running(
    where: InQueue, *, limit: options.Limit = options.DEFAULT_LIMIT, cursor: options.Cursor = None
) -> None:
    """Show what runs: since when, for how long it may, and on which worker."""
    where.tell(lambda client: client.running(where.queue, limit, cursor), print_running)


@commands.add("maitred queues")
def queues(where: Where) -> None:
    """List the queues: what is in each, and whether it is paused. With --json, also all settings."""
    where.tell(lambda client: client.queues(), print_queues)


@commands.add("maitred workers --queue render")
def workers(where: InQueue) -> None:
    """Show the workers of a queue: their slots, what they serve, and what their sandbox enforces."""
    where.tell(lambda client: client.workers(where.queue), print_workers)


@commands.add("maitred submitter user:ada")
def submitter(
    where: InQueue,
    who: Annotated[str, typer.Argument(metavar="SUBMITTER", help="user:ID or team:ID.")],
) -> None:
    """Show what a submitter has in line, newest first, and how long its next job would be delayed."""
    kind, name = submitter_of("SUBMITTER", who).values()

    def show(found: SubmitterDocument) -> None:
        print_submitter(found, who)
        for id in found.jobs:
            say(id)

    where.tell(lambda client: client.submitter(where.queue, kind, name), show)


@commands.add("maitred pause --reason lunch", "maitred pause --queue render")
def pause(where: InQueue, *, reason: options.Reason = "") -> None:
    """Let a queue start nothing more; it goes on to accept. `maitred resume` opens it again."""
    where.tell(lambda client: client.pause(where.queue, reason), print_queue)


@commands.add("maitred check", "maitred check --repair --queue render")
def check(
    where: InQueue,
    *,
    repair: Annotated[bool, typer.Option("--repair", help="Put right what can be.")] = False,
) -> None:
    """Look for broken rules in a queue's store; ends with 1 if one stays broken."""
    found = where.ask(lambda client: client.check(where.queue, repair=repair))
    where.print(found, print_check)
    if not all(violation.repaired for violation in found.violations):
        raise typer.Exit(1)


@commands.add("maitred reconcile --queue ingest")
def reconcile(where: InQueue) -> None:
    """Rebuild a queue's line from its ledger, where that is kept elsewhere, and tell what was done."""
    where.tell(lambda client: client.reconcile(where.queue), print_reconcile)
