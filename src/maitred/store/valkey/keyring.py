"""The API keys in the server, one hash, and the audit log, one stream; they belong to no queue."""

from collections.abc import Sequence

from maitred.store.port import MOST_NOTES
from maitred.store.valkey.calls import Calls
from maitred.store.valkey.keys import AUDIT, KEYS
from maitred.store.valkey.records import text

# Compares and changes in one step. Arguments: the id, then the old and the new record; an empty one is none.
_CHANGE = """
local old = redis.call('HGET', KEYS[1], ARGV[1]) or ''
if old ~= ARGV[2] then return 0 end
if ARGV[3] == '' then return redis.call('HDEL', KEYS[1], ARGV[1]) end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
"""

# Adds several at once. Arguments: how many are kept, then each note.
_NOTE = """
for i = 2, #ARGV do redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', 'n', ARGV[i]) end
return 1
"""


class ValkeyKeyring:
    """The API keys of one server, and who did what with them."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def all(self) -> dict[str, bytes]:
        """Give all records by id."""
        found = await self._calls.command(KEYS, "HGETALL", KEYS)
        return {text(id): record for id, record in zip(found[::2], found[1::2], strict=True)}

    async def get(self, id: str) -> bytes | None:
        """Give one record."""
        found: bytes | None = await self._calls.command(KEYS, "HGET", KEYS, id)
        return found

    async def change(self, id: str, old: bytes | None, new: bytes | None) -> bool:
        """Put a new record in the place of an old one."""
        return bool(await self._calls.change(KEYS, "EVAL", _CHANGE, 1, KEYS, id, old or b"", new or b""))

    async def note(self, notes: Sequence[bytes]) -> None:
        """Add to the audit log."""
        await self._calls.change(AUDIT, "EVAL", _NOTE, 1, AUDIT, MOST_NOTES, *notes)

    async def notes(self, before: str | None, limit: int) -> list[tuple[str, bytes]]:
        """Give the last notes, or those before one."""
        last = f"({before}" if before else "+"
        found = await self._calls.command(AUDIT, "XREVRANGE", AUDIT, last, "-", "COUNT", limit)
        return [(text(id), fields[1]) for id, fields in found]

    async def noted(self) -> int:
        """Count the notes."""
        return int(await self._calls.command(AUDIT, "XLEN", AUDIT))
