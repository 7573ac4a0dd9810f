"""The commands about callbacks: the tries at those of a job, and the secret that they are signed with."""

from typing import Annotated

import typer

from maitred.cli import options
from maitred.cli.calling import ask
from maitred.cli.exits import expected
from maitred.cli.given import seconds
from maitred.cli.printing import clock, console, plain_row, print_json, say, table
from maitred.client import Client
from maitred.errors import ConfigError, UnknownKey
from maitred.wire import KeyDocument

LOCAL = "local"

commands = typer.Typer()
keys = typer.Typer(help="The API keys, and the secrets that callbacks are signed with.", no_args_is_help=True)

_KeyId = Annotated[str, typer.Argument(metavar="[KEY]", help="The key's id; `local` is you, without one.")]


@commands.command(epilog="For example: maitred deliveries FL9_fz27Ce9QZuqTzKP9ftXe")
@expected
def deliveries(
    id: options.JobId,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    version: Annotated[int | None, typer.Option("--version", min=1, help="An older version.")] = None,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Show each try to tell a job's response address of it, and what was answered."""
    page = ask(server, data, lambda client: client.deliveries(queue, id, version))
    if as_json:
        print_json(page)
        return
    if not page.items:
        say("Nothing was sent yet.")
        return
    rows = table("at", "message", "try", "answer", "said", "again")
    for each in page.items:
        cells = (clock(each.at), each.type, each.attempt, each.answer, each.said, clock(each.next_at) or "")
        rows.add_row(*plain_row(cells))
    console().print(rows)


@keys.command("list")
@expected
def list_keys(
    *,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """List the keys, without their secrets; with --json they are there."""
    page = ask(server, data, lambda client: client.keys())
    if as_json:
        print_json(page)
        return
    rows = table("id", "role", "name", "made")
    for key in page.items:
        rows.add_row(*plain_row((key.id, key.role, key.name, clock(key.created_at))))
    console().print(rows)


@keys.command(epilog="For example: maitred keys secret --rotate --keep 1h")
@expected
def secret(
    id: _KeyId = LOCAL,
    *,
    rotate: Annotated[bool, typer.Option("--rotate", help="Make a new one first.")] = False,
    keep: Annotated[
        str | None, typer.Option("--keep", help="How long the old one signs too, such as 1h; else a day.")
    ] = None,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Show the secret that a key's callbacks are signed with, for their receivers."""
    if keep is not None and not rotate:
        raise ConfigError("--keep goes with --rotate.")
    how_long = None if keep is None else seconds("--keep", keep)

    async def look(client: Client) -> KeyDocument:
        if rotate:
            return await client.rotate_key(id, how_long)
        for key in (await client.keys()).items:
            if key.id == id:
                return key
        raise UnknownKey(id)

    key = ask(server, data, look)
    if as_json:
        print_json(key)
    else:
        say(key.secrets[0].secret)
