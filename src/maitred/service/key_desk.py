"""The desk for API keys: list, make, replace and revoke. What changes is seen at the door at once."""

from maitred.core.settings import SECOND
from maitred.service.document import Document
from maitred.service.door import Door
from maitred.service.keyring import LOCAL, Keys, key_document
from maitred.service.parts import part_of
from maitred.wire import KeyBody


class KeyDesk:
    """The use cases on the keys of one place."""

    def __init__(self, keys: Keys, door: Door) -> None:
        self._keys, self._door = keys, door

    async def page(self, cursor: str | None = None, limit: int = 50) -> Document:
        """List the API keys with their callback secrets."""
        part = part_of(await self._keys.all(), cursor, limit)
        return part.page([key_document(key) for key in part.items])

    async def create(self, body: KeyBody) -> Document:
        """Make a key; it is in the answer, under `key`, and never again."""
        made = await self._keys.create(
            body.role,
            name=body.name,
            queues=body.queues,
            submitters=body.submitters,
            lifetime=round(body.expires_in * SECOND) if body.expires_in else 0,
        )
        self._door.forget()
        return {**key_document(made.record), "key": made.key}

    async def rotate(self, key: str, keep: int, *, new_key: bool | None = None) -> Document:
        """Replace a key and its callback secret, and let the secret before sign for so long.

        Without `new_key`, or for `local` if nothing is said, it is the secret alone. Raises `UnknownKey` or
        `Conflict`.
        """
        if not (key != LOCAL if new_key is None else new_key):
            return key_document(await self._keys.rotate(key, keep))
        made = await self._keys.renew(key, keep)
        self._door.forget()
        return {**key_document(made.record), "key": made.key}

    async def revoke(self, key: str) -> None:
        """Let a key be good no longer; `UnknownKey` or `Conflict`."""
        await self._keys.revoke(key)
        self._door.forget()
