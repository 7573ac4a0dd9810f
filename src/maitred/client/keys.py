"""Calls about API keys: who they are, and the secrets that callbacks are signed with."""

from maitred.client.calling import Caller
from maitred.client.sending import key_path
from maitred.wire import KeyDocument, Page


class KeyCalls(Caller):
    """What can be asked about the keys of a server."""

    async def keys(self) -> Page[KeyDocument]:
        """List the keys; `local` is whoever calls on loopback without one."""
        return Page[KeyDocument].model_validate_json(
            await self._ask("GET", key_path(), query={"limit": "500"})
        )

    async def rotate_key(self, id: str, keep: float | None = None) -> KeyDocument:
        """Give a key a new callback secret; the one before signs too for so many seconds, else for a day."""
        body = {} if keep is None else {"keep": keep}
        return KeyDocument.model_validate_json(
            await self._ask("POST", key_path(id, "rotate"), body=body, id=id)
        )
