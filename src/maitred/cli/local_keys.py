"""The keys of a store, without a server: of the one that is named, of the settings', or of a data directory.

If no embedded store runs on the directory, one is started for the time of the question.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

from maitred import config
from maitred.cli.calling import KeyQuestion, T
from maitred.core.settings import SECOND
from maitred.errors import StoreUnavailable
from maitred.service.audit import Change
from maitred.service.desk import Desk
from maitred.service.keyring import KEPT, LOCAL
from maitred.service.whereabouts import embedded_url
from maitred.store.connect import connect
from maitred.store.valkey.embedded import Embedded
from maitred.wire import AuditEntry, KeyBody, KeyDocument, Page, parse_request

MOST_KEYS = 500


def look(data: Path, store: str | None, question: KeyQuestion[T]) -> T:
    """Ask the store itself."""
    with contextlib.ExitStack() as running:
        url = store or config.load().store.url
        if url is None:
            try:
                url = embedded_url(data)
            except StoreUnavailable:
                url = running.enter_context(Embedded(data)).url

        async def looking() -> T:
            stores = connect(url)
            try:
                return await question(LocalKeys(Desk(stores)))
            finally:
                await stores.close()

        return asyncio.run(looking())


class LocalKeys:
    """What a server answers about keys, from its store."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def keys(self) -> Page[KeyDocument]:
        """List the keys."""
        return Page[KeyDocument].model_validate(await self._desk.key_desk.page(limit=MOST_KEYS))

    async def create_key(
        self,
        role: str,
        *,
        name: str = "",
        queues: Sequence[str] = (),
        submitters: Sequence[str] = (),
        expires_in: float | None = None,
    ) -> KeyDocument:
        """Make a key."""
        asked = {
            "role": role,
            "name": name,
            "queues": list(queues),
            "submitters": list(submitters),
            "expires_in": expires_in,
        }
        made = KeyDocument.model_validate(await self._desk.key_desk.create(parse_request(KeyBody, asked)))
        await self._note("POST /api/v1/keys", made.id)
        return made

    async def revoke_key(self, id: str) -> None:
        """Let a key be good no longer."""
        await self._desk.key_desk.revoke(id)
        await self._note("DELETE /api/v1/keys/{id}", id)

    async def rotate_key(self, id: str, keep: float | None = None, *, new_key: bool = False) -> KeyDocument:
        """Give a key a new callback secret, and perhaps a new key."""
        kept = KEPT if keep is None else round(keep * SECOND)
        document = await self._desk.key_desk.rotate(id, kept, new_key=new_key)
        await self._note("POST /api/v1/keys/{id}/rotate", id)
        return KeyDocument.model_validate(document)

    async def audit(self, limit: int = 50, cursor: str | None = None) -> Page[AuditEntry]:
        """Show who changed what, newest first."""
        return Page[AuditEntry].model_validate(await self._desk.audit.page(cursor, limit))

    async def _note(self, action: str, subject: str) -> None:
        """Write down that it was done at the store: there is no caller, and no address."""
        await self._desk.audit.note(Change(LOCAL, "the store", "", action, None, subject, 200))
