"""The audit log: who changed what, when, and from where. It keeps the last tens of thousands of changes."""

import asyncio
import re
from dataclasses import dataclass

import msgspec
import structlog

from maitred.errors import StoreError
from maitred.service.cursor import read_text_cursor, write_text_cursor, wrong_cursor
from maitred.service.document import Document
from maitred.service.moment import iso
from maitred.store.port import Keyring
from maitred.wire import encode_json

_MILLISECOND = 1_000
_ID = re.compile("[0-9]{1,18}-[0-9]{1,18}")
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Change:
    """One call that changed something, or that was forbidden."""

    by: str
    name: str
    address: str
    action: str
    queue: str | None
    subject: str | None
    status: int


_read = msgspec.json.Decoder(Change).decode


class Audit:
    """The audit log of one place."""

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring
        self._waiting: list[bytes] = []
        self._turn = asyncio.Lock()

    async def note(self, change: Change) -> None:
        """Write down a change; what comes while one is written goes together.

        If the store does not take it, that is logged: the change itself was made.
        """
        self._waiting.append(encode_json(change))
        async with self._turn:
            notes, self._waiting = self._waiting, []
            if not notes:
                return
            try:
                await self._keyring.note(notes)
            except StoreError as error:
                _log.error("changes are missing in the audit log", changes=len(notes), error=error.code)

    async def page(self, cursor: str | None = None, limit: int = 50) -> Document:
        """List changes, newest first."""
        before = read_text_cursor(cursor) if cursor else None
        if before is not None and not _ID.fullmatch(before):
            raise wrong_cursor()
        # The two questions leave together.
        found, total = await asyncio.gather(self._keyring.notes(before, limit + 1), self._keyring.noted())
        shown = found[:limit]
        return {
            "items": [_document(id, _read(note)) for id, note in shown],
            "next": write_text_cursor(shown[-1][0]) if len(found) > limit else None,
            "total": total,
        }


def _document(id: str, change: Change) -> Document:
    at = int(id.partition("-")[0]) * _MILLISECOND
    return {
        "id": id,
        "at": iso(at),
        "by": change.by,
        "name": change.name,
        "address": change.address,
        "action": change.action,
        "queue": change.queue,
        "subject": change.subject,
        "status": change.status,
    }
