"""Every change over HTTP goes into the audit log before it is answered, and so does what was forbidden."""

from collections.abc import Sequence
from http import HTTPStatus
from urllib.parse import unquote

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from maitred.errors import MaitredError
from maitred.http.access import action_of
from maitred.service.audit import Audit, Change
from maitred.service.caller import Caller
from maitred.service.document import Document

MOST_NAMED = 20
_READS = ("GET", "HEAD", "OPTIONS")
_SUBJECTS = ("type", "id", "bid", "name")


class Audited:
    """Notes each call that may have changed something: it was answered well, forbidden, or broke."""

    def __init__(self, app: ASGIApp, audit: Audit) -> None:
        self._app, self._audit = app, audit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the call on, and note what became of it."""
        if scope["type"] != "http" or scope["method"] in _READS:
            await self._app(scope, receive, send)
            return

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                await self._note(scope, message["status"])
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except Exception:
            await self._note(scope, HTTPStatus.INTERNAL_SERVER_ERROR)
            raise

    async def _note(self, scope: Scope, status: int) -> None:
        caller = scope.get("state", {}).get("caller")
        told = status < HTTPStatus.BAD_REQUEST or status == HTTPStatus.FORBIDDEN
        if caller is not None and (told or status >= HTTPStatus.INTERNAL_SERVER_ERROR):
            await self._audit.note(change(HTTPConnection(scope), caller, status))


def change(connection: HTTPConnection, caller: Caller, status: int) -> Change:
    """Give what is written down of a call; what it made is named by `made`."""
    named = {name: unquote(value) for name, value in connection.path_params.items()}
    made = connection.scope.get("state", {}).get("made")
    return Change(
        by=caller.key.id,
        name=caller.by,
        address=caller.address,
        action=action_of(connection),
        queue=named.get("queue"),
        subject=made or ":".join(named[name] for name in _SUBJECTS if name in named) or None,
        status=status,
    )


def made(connection: HTTPConnection, subject: str) -> None:
    """Name what a call made, which its path does not."""
    connection.state.made = subject


def made_many(connection: HTTPConnection, taken: Sequence[Document | MaitredError], *before: str) -> None:
    """Name the jobs that a call made or changed; of very many, how many there are more."""
    ids = [each["id"] for each in taken if not isinstance(each, MaitredError)]
    more = [f"and {len(ids) - MOST_NAMED} more"] if len(ids) > MOST_NAMED else []
    made(connection, ", ".join([*before, *ids[:MOST_NAMED], *more]) or "no job")
