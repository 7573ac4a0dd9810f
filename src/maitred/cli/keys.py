"""The commands about API keys: make, list, replace, revoke; the secrets of callbacks; and who did what.

They ask a server. Where none runs, they ask the store itself, so that there can be a key before the first
server that others reach; with --local they do so in any case, for whoever has the store has lost no key.
"""

from typing import Annotated, Any

import typer

from maitred.cli import options
from maitred.cli.calling import Where
from maitred.cli.command import Commands
from maitred.cli.given import seconds
from maitred.cli.printing import clock, print_page, print_pairs, say
from maitred.client import Client
from maitred.errors import ConfigError, UnknownKey
from maitred.wire import AuditEntry, KeyDocument, Page

LOCAL = "local"

commands = Commands("Queues")
keys = Commands(help="The API keys, and the secrets that callbacks are signed with.", no_args_is_help=True)

_KeyId = Annotated[str, typer.Argument(metavar="[KEY]", help="The key's id; `local` is you, without one.")]
_MadeId = Annotated[str, typer.Argument(metavar="KEY", help="The key's id, as `keys list` shows it.")]
_Keep = Annotated[
    str | None, typer.Option("--keep", help="How long the old secret signs too, such as 1h; else a day.")
]


@keys.add(
    "maitred keys create --role admin --name root",
    "maitred keys create --role submitter --submitter user:ada --queue grading --expires 90d",
)
def create(
    where: Where,
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
) -> None:
    """Make a key and show it, this once. From the first one on every call needs a key."""
    how_long = None if expires is None else seconds("--expires", expires)

    async def creating(client: Client) -> KeyDocument:
        return await client.create_key(
            role, name=name, queues=queue or [], submitters=submitter or [], expires_in=how_long
        )

    where.tell(creating, _show, or_store=True)


@keys.add("maitred keys list", name="list")
def list_keys(where: Where) -> None:
    """List the keys, without their secrets; with --json they are there."""
    where.tell(lambda client: client.keys(), _print_keys, or_store=True)


def _print_keys(page: Page[KeyDocument]) -> None:
    def cells(key: KeyDocument) -> list[object]:
        whom = ", ".join([*key.submitters, *(f"queue {name}" for name in key.queues)])
        until = "revoked" if key.revoked else f"until {clock(key.expires_at)}" if key.expires_at else ""
        return [key.id, key.role, key.name, whom, clock(key.created_at), until]

    print_page(page, ("id", "role", "name", "for", "made", "good"), cells, "There is no key.")


@keys.add("maitred keys rotate 4f1c9a0b77d2", "maitred keys rotate 4f1c9a0b77d2 --secret-only --keep 1h")
def rotate(
    where: Where,
    id: _KeyId = LOCAL,
    *,
    secret_only: Annotated[
        bool, typer.Option("--secret-only", help="Leave the key as it is; `local` has none anyway.")
    ] = False,
    keep: _Keep = None,
) -> None:
    """Replace a key, which is shown this once and good instead of the one before, and its callback secret."""
    how_long, new_key = _kept(keep), False if secret_only else None
    where.tell(lambda client: client.rotate_key(id, how_long, new_key=new_key), _show, or_store=True)


@keys.add("maitred keys revoke 4f1c9a0b77d2")
def revoke(where: Where, id: _MadeId) -> None:
    """Let a key be good no longer."""

    async def revoking(client: Client) -> dict[str, Any]:
        await client.revoke_key(id)
        return {"revoked": id}

    where.tell(revoking, lambda _: say(f"Revoked {id}."), or_store=True)


@keys.add("maitred keys secret", "maitred keys secret 4f1c9a0b77d2 --rotate --keep 1h")
def secret(
    where: Where,
    id: _KeyId = LOCAL,
    *,
    rotate: Annotated[bool, typer.Option("--rotate", help="Make a new one first.")] = False,
    keep: _Keep = None,
) -> None:
    """Show the secret that a key's callbacks are signed with, for their receivers."""
    if keep is not None and not rotate:
        raise ConfigError("--keep goes with --rotate.")
    how_long = _kept(keep)

    async def finding(client: Client) -> KeyDocument:
        if rotate:
            return await client.rotate_key(id, how_long, new_key=False)
        found = {each.id: each for each in (await client.keys()).items}
        if id not in found:
            raise UnknownKey(id)
        return found[id]

    where.tell(finding, lambda key: say(key.secrets[0].secret), or_store=True)


def _kept(keep: str | None) -> float | None:
    return None if keep is None else seconds("--keep", keep)


@commands.add("maitred audit", "maitred audit -n 100 --json | jq -r .items[].action")
def audit(
    where: Where, *, limit: options.Limit = options.DEFAULT_LIMIT, cursor: options.Cursor = None
) -> None:
    """Show who changed what, newest first."""
    where.tell(lambda client: client.audit(limit, cursor), _print_audit, or_store=True)


def _print_audit(page: Page[AuditEntry]) -> None:
    def cells(each: AuditEntry) -> list[object]:
        what = (each.queue or "", each.subject or "", each.status)
        return [clock(each.at), each.name, each.address, each.action, *what]

    headings = ("at", "who", "from", "did", "queue", "what", "answer")
    print_page(page, headings, cells, "Nothing was changed yet.")


def _show(key: KeyDocument) -> None:
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
