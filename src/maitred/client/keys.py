"""Calls about API keys: who they are, the secrets that callbacks are signed with, and who did what."""

from collections.abc import Sequence
from typing import Any

from maitred.client.calling import Caller
from maitred.client.retrying import Question
from maitred.client.sending import key_path
from maitred.wire import AuditEntry, KeyDocument, Page

AUDIT = "/api/v1/audit"


class KeyCalls(Caller):
    """What can be asked about the keys of a server."""

    async def keys(self) -> Page[KeyDocument]:
        """List the keys; `local` is whoever calls while there are none."""
        return Page[KeyDocument].model_validate_json(
            await self._ask(Question("GET", key_path()), query={"limit": "500"})
        )

    async def create_key(
        self,
        role: str,
        *,
        name: str = "",
        queues: Sequence[str] = (),
        submitters: Sequence[str] = (),
        expires_in: float | None = None,
    ) -> KeyDocument:
        """Make a key; it is the answer's `key`, and is never shown again."""
        body = {
            "role": role,
            "name": name,
            "queues": list(queues),
            "submitters": list(submitters),
            "expires_in": expires_in,
        }
        return KeyDocument.model_validate_json(await self._ask(Question("POST", key_path()), body=body))

    async def revoke_key(self, id: str) -> None:
        """Let a key be good no longer."""
        await self._ask(Question("DELETE", key_path(id), id=id))

    async def rotate_key(
        self, id: str, keep: float | None = None, *, new_key: bool | None = None
    ) -> KeyDocument:
        """Replace a key, which is in the answer, and its callback secret.

        The secret before signs too for so many seconds, else for a day. If `new_key` is false, and for
        `local`, which has no key, only the secret is replaced.
        """
        body: dict[str, Any] = {} if new_key is None else {"new_key": new_key}
        if keep is not None:
            body["keep"] = keep
        return KeyDocument.model_validate_json(
            await self._ask(Question("POST", key_path(id, "rotate"), id=id), body=body)
        )

    async def audit(self, limit: int = 50, cursor: str | None = None) -> Page[AuditEntry]:
        """Show who changed what, newest first."""
        query = {"limit": str(limit)} | ({} if cursor is None else {"cursor": cursor})
        return Page[AuditEntry].model_validate_json(await self._ask(Question("GET", AUDIT), query=query))
