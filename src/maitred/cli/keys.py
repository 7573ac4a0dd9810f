"""The commands about API keys: make, list, replace, revoke; the secrets of callbacks; and who did what.

They ask a server. Where none runs, they ask the store itself, so that there can be a key before the first
server that others reach; with --local they do so in any case, for whoever has the store has lost no key.
"""

from pathlib import Path
from typing import Annotated

import typer

from maitred.cli import options
from maitred.cli.calling import KeyQuestion, T, ask_or_look
from maitred.cli.exits import expected
from maitred.cli.given import seconds
from maitred.cli.printing import clock, console, plain_row, print_json, print_pairs, say, table
from maitred.errors import ConfigError, UnknownKey
from maitred.wire import KeyDocument

LOCAL = "local"

commands = typer.Typer()
keys = typer.Typer(help="The API keys, and the secrets that callbacks are signed with.", no_args_is_help=True)

_KeyId = Annotated[str, typer.Argument(metavar="[KEY]", help="The key's id; `local` is you, without one.")]
_MadeId = Annotated[str, typer.Argument(metavar="KEY", help="The key's id, as `keys list` shows it.")]
_Local = Annotated[bool, typer.Option("--local", help="Ask the store itself, and no server.")]
_Store = Annotated[str | None, typer.Option("--store", help="The url of the store to ask itself.")]
_Keep = Annotated[
    str | None, typer.Option("--keep", help="How long the old secret signs too, such as 1h; else a day.")
]


class _Where:
    """Where a command asks."""

    def __init__(self, server: str | None, data: Path, store: str | None, *, local: bool) -> None:
        self._server, self._data = server, data
        self._store, self._local = store, local or store is not None

    def ask(self, question: KeyQuestion[T]) -> T:
        """Ask, and give the answer."""
        return ask_or_look(self._server, self._data, question, store=self._store, local=self._local)


@keys.command(epilog="For example: maitred keys create --role submitter --submitter user:ada --expires 90d")
@expected
def create(
    *,
    role: Annotated[str, typer.Option("--role", help="viewer, submitter, operator or admin.")],
    queue: Annotated[
        list[str] | None, typer.Option("--queue", "-q", help="Only for this queue; may be said again.")
    ] = None,
    submitter: Annotated[
        list[str] | None,
        typer.Option("--submitter", help="For role submitter: user:ID or team:ID, again for more; * is all."),
    ] = None,
    name: Annotated[str, typer.Option("--name", help="What it is called where it is told who did it.")] = "",
    expires: Annotated[
        str | None, typer.Option("--expires", help="How long it is good, such as 90d.")
    ] = None,
    store: _Store = None,
    local: _Local = False,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Make a key and show it, this once. From the first one on every call needs a key."""
    how_long = None if expires is None else seconds("--expires", expires)
    made = _Where(server, data, store, local=local).ask(
        lambda asked: asked.create_key(
            role, name=name, queues=queue or [], submitters=submitter or [], expires_in=how_long
        )
    )
    _show(made, as_json=as_json)


@keys.command("list")
@expected
def list_keys(
    *,
    store: _Store = None,
    local: _Local = False,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """List the keys, without their secrets; with --json they are there."""
    page = _Where(server, data, store, local=local).ask(lambda asked: asked.keys())
    if as_json:
        print_json(page)
        return
    rows = table("id", "role", "name", "for", "made", "good")
    for key in page.items:
        whom = ", ".join([*key.submitters, *(f"queue {name}" for name in key.queues)])
        until = "revoked" if key.revoked else f"until {clock(key.expires_at)}" if key.expires_at else ""
        rows.add_row(*plain_row((key.id, key.role, key.name, whom, clock(key.created_at), until)))
    console().print(rows)


@keys.command(epilog="For example: maitred keys rotate 4f1c9a0b77d2 --key")
@expected
def rotate(
    id: _KeyId = LOCAL,
    *,
    new_key: Annotated[
        bool, typer.Option("--key", help="Make a new key too; the one before is no longer good.")
    ] = False,
    keep: _Keep = None,
    store: _Store = None,
    local: _Local = False,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Give a key a new callback secret, and with --key also a new key, shown this once."""
    how_long = None if keep is None else seconds("--keep", keep)
    where = _Where(server, data, store, local=local)
    made = where.ask(lambda asked: asked.rotate_key(id, how_long, new_key=new_key))
    _show(made, as_json=as_json)


@keys.command()
@expected
def revoke(
    id: _MadeId,
    *,
    store: _Store = None,
    local: _Local = False,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Let a key be good no longer."""
    _Where(server, data, store, local=local).ask(lambda asked: asked.revoke_key(id))
    if as_json:
        typer.echo(f'{{"revoked": "{id}"}}')
    else:
        say(f"Revoked {id}.")


@keys.command(epilog="For example: maitred keys secret --rotate --keep 1h")
@expected
def secret(
    id: _KeyId = LOCAL,
    *,
    rotate: Annotated[bool, typer.Option("--rotate", help="Make a new one first.")] = False,
    keep: _Keep = None,
    store: _Store = None,
    local: _Local = False,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Show the secret that a key's callbacks are signed with, for their receivers."""
    if keep is not None and not rotate:
        raise ConfigError("--keep goes with --rotate.")
    how_long = None if keep is None else seconds("--keep", keep)
    where = _Where(server, data, store, local=local)
    if rotate:
        key = where.ask(lambda asked: asked.rotate_key(id, how_long))
    else:
        found = {each.id: each for each in where.ask(lambda asked: asked.keys()).items}
        if id not in found:
            raise UnknownKey(id)
        key = found[id]
    if as_json:
        print_json(key)
    else:
        say(key.secrets[0].secret)


@commands.command()
@expected
def audit(
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=500, help="How many at most.")] = 20,
    store: _Store = None,
    local: _Local = False,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Show who changed what, newest first."""
    page = _Where(server, data, store, local=local).ask(lambda asked: asked.audit(limit))
    if as_json:
        print_json(page)
        return
    if not page.items:
        say("Nothing was changed yet.")
        return
    rows = table("at", "who", "from", "did", "queue", "what", "answer")
    for each in page.items:
        what = (each.queue or "", each.subject or "", each.status)
        rows.add_row(*plain_row((clock(each.at), each.name, each.address, each.action, *what)))
    console().print(rows)


def _show(key: KeyDocument, *, as_json: bool) -> None:
    if as_json:
        print_json(key)
        return
    print_pairs(
        [
            ("key", key.key),
            ("id", key.id),
            ("role", key.role),
            ("name", key.name),
            ("queues", ", ".join(key.queues) or None),
            ("submitters", ", ".join(key.submitters) or None),
            ("expires", clock(key.expires_at)),
            ("secret", key.secrets[0].secret),
        ]
    )
    if key.key:
        say("The key is not shown again. Give it as MAITRED_KEY, or with --key-file.", err=True)
