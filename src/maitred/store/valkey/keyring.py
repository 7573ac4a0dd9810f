"""The API keys in the server: one hash, which belongs to no queue."""

from maitred.store.valkey.calls import Calls
from maitred.store.valkey.keys import KEYS
from maitred.store.valkey.records import text

# Compares and changes in one step. Arguments: the id, then the old and the new record; an empty one is none.
_CHANGE = """
local old = redis.call('HGET', KEYS[1], ARGV[1]) or ''
if old ~= ARGV[2] then return 0 end
if ARGV[3] == '' then return redis.call('HDEL', KEYS[1], ARGV[1]) end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
"""


class ValkeyKeyring:
    """The API keys of one server."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def all(self) -> dict[str, bytes]:
        """Give all records by id."""
        found = await self._calls.command("HGETALL", KEYS)
        return {text(id): record for id, record in zip(found[::2], found[1::2], strict=True)}

    async def change(self, id: str, old: bytes | None, new: bytes | None) -> bool:
        """Put a new record in the place of an old one."""
        return bool(await self._calls.command("EVAL", _CHANGE, 1, KEYS, id, old or b"", new or b""))
