"""The commands for what came before: `legacy import`."""

import asyncio
from typing import Annotated

import typer

from maitred.cli import options
from maitred.cli.command import Commands
from maitred.cli.opening import AtStore
from maitred.cli.printing import print_json, say

commands = Commands(help="Take over what an older queue has.", no_args_is_help=True)


@commands.callback()
def legacy() -> None:
    """Take over what an older queue has."""


@commands.add("maitred legacy import zookeeper://127.0.0.1:2181/ingest -q ingest", name="import")
def import_(
    given: AtStore,
    url: Annotated[str, typer.Argument(metavar="URL/PARENT", help="Where the records are, in ZooKeeper.")],
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
) -> None:
    """Make a job of each older record; doing it twice makes none twice."""
    # What this runs takes long to import, and other commands should not wait for it.
    from maitred import config as settings  # noqa: PLC0415
    from maitred.service.legacy import Imported, import_records  # noqa: PLC0415
    from maitred.service.whereabouts import embedded_url  # noqa: PLC0415
    from maitred.store.connect import connect  # noqa: PLC0415

    async def run() -> Imported:
        stores = connect(given.store or settings.load(given.config).store.url or embedded_url(given.data))
        try:
            return await import_records(stores.queue(queue), url)
        finally:
            await stores.close()

    done = asyncio.run(run())
    if given.as_json:
        faults = [{"node": node, "message": why} for node, why in done.faults]
        print_json({"counts": done.counts, "made": done.made, "known": done.known, "faults": faults})
    else:
        for status, count in sorted(done.counts.items()):
            say(f"{status}: {count}{' (left out)' if status == 'Deleted' else ''}")
        for node, why in done.faults:
            say(f"{node} cannot be read: {why}", err=True)
        say(f"{done.made} jobs were made in {queue}, {done.known} were known already.")
    if done.faults:
        raise typer.Exit(1)
