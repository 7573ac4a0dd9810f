"""How scripts are called: loads the library when the server does not know it, and names what went wrong.

All calls share one connection; each reader of an inbox has its own, since it blocks there.
"""

import asyncio
import re
import time
from typing import Any

from maitred.errors import EvictionForbidden, SchemaMismatch, StoreError, StoreUnavailable, UnknownQueue
from maitred.store.port import CallListener, ScriptTime
from maitred.store.valkey import scripts
from maitred.store.valkey.connection import ANSWER_PATIENCE, Address, Connection, ReplyError

# What a server answers that is there and cannot serve yet, or at the moment: it is worth asking again.
_SCRIPTS = re.compile(rb"cmdstat_fcall:calls=(\d+),usec=(\d+)")
_FOR_NOW = ("LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN")


def _failure(what: str, error: ReplyError) -> StoreError:
    """Tell a server that is not ready from one that refuses."""
    if str(error).startswith(_FOR_NOW):
        return StoreUnavailable(f"the store is not ready: {error}")
    return StoreError(f"{what}: {error}")


class Calls:
    """The connections to one server."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._shared = Connection(address)
        self._parked: dict[str, Connection] = {}
        self.listeners: list[CallListener] = []
        self._functions = {verb: scripts.function(verb) for verb in scripts.verbs()}

    async def function(self, verb: str, queue: str, floor: str, *args: Any) -> Any:
        """Call a verb; UnknownQueue, SchemaMismatch, StoreUnavailable or StoreError where it cannot be."""
        begun, failure = time.perf_counter(), ""
        try:
            return await self._function(verb, queue, floor, *args)
        except StoreError as error:
            failure = "unavailable" if isinstance(error, StoreUnavailable) else "refused"
            raise
        finally:
            for listener in self.listeners:
                listener(verb, time.perf_counter() - begun, failure)

    async def _function(self, verb: str, queue: str, floor: str, *args: Any) -> Any:
        try:
            return await self._shared.call("FCALL", self._functions[verb], 1, floor, *args)
        except ReplyError as error:
            reason = str(error)
            if "Function not found" in reason:
                await self.command("FUNCTION", "LOAD", "REPLACE", scripts.library())
                return await self._function(verb, queue, floor, *args)
            if reason.startswith("NOQUEUE"):
                raise UnknownQueue(queue) from None
            if reason.startswith("SCHEMA"):
                raise SchemaMismatch(reason.removeprefix("SCHEMA ")) from None
            raise _failure(verb, error) from None

    async def command(self, *args: Any) -> Any:
        """Send one command; StoreUnavailable or StoreError where it cannot be done."""
        try:
            return await self._shared.call(*args)
        except ReplyError as error:
            raise _failure(args[0], error) from None

    async def pop_all(self, key: str, timeout: float) -> list[bytes]:
        """Wait for a list to have entries, and take all of them."""
        answer = await self._wait(key, timeout, "BLMPOP", timeout, 1, key, "LEFT", "COUNT", 1000)
        return list(answer[1]) if answer else []

    async def read_stream(self, key: str, after: str, timeout: float) -> list[Any]:
        """Wait for a stream to have entries after this one, and give some of them."""
        block = max(1, round(timeout * 1000))
        answer = await self._wait(key, timeout, "XREAD", "COUNT", 256, "BLOCK", block, "STREAMS", key, after)
        return list(answer[0][1]) if answer else []

    async def _wait(self, key: str, timeout: float, *command: Any) -> Any:
        """Send a command that blocks, on a connection of its own."""
        connection = self._parked.setdefault(key, Connection(self._address, patience=None))
        try:
            async with asyncio.timeout(timeout + ANSWER_PATIENCE):
                return await connection.call(*command)
        except ReplyError as error:
            raise _failure(command[0], error) from None
        except BaseException as error:
            # Nobody will read what this call still takes, so the server must not give it out.
            connection.close()
            if self._parked.get(key) is connection:
                del self._parked[key]
            if isinstance(error, TimeoutError):
                raise StoreUnavailable("the store does not answer: it was silent for too long") from None
            raise

    async def script_time(self) -> ScriptTime | None:
        """Tell how busy the server is with functions; None where it may not be asked."""
        try:
            found = _SCRIPTS.search(await self.command("INFO", "commandstats"))
        except StoreUnavailable:
            raise
        except StoreError:
            return None
        return ScriptTime(int(found[1]), int(found[2]) / 1e6) if found else None

    async def check_server(self) -> None:
        """Refuse a server that may evict keys; where the setting cannot be read, trust it."""
        try:
            _, policy = await self.command("CONFIG", "GET", "maxmemory-policy")
        except (StoreError, ValueError):
            return
        if policy != b"noeviction":
            raise EvictionForbidden

    def close(self) -> None:
        """Close the connections."""
        for connection in (self._shared, *self._parked.values()):
            connection.close()
        self._parked.clear()
