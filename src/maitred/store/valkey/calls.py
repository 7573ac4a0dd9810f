"""How scripts are called, and the names of what went wrong.

All calls to a server share one connection; each reader of an inbox has its own, since it blocks there.
"""

import asyncio
import re
import time
from collections.abc import Callable
from typing import Any

from maitred.address import Site
from maitred.errors import EvictionForbidden, SchemaMismatch, StoreError, StoreUnavailable, UnknownQueue
from maitred.store.port import CallListener, ScriptTime
from maitred.store.valkey import scripts
from maitred.store.valkey.board import Board, OneServer
from maitred.store.valkey.cluster import Cluster
from maitred.store.valkey.connection import ANSWER_PATIENCE, Connection, ReplyError
from maitred.store.valkey.sentinel import Primary

_SCRIPTS = re.compile(rb"cmdstat_fcall:calls=(\d+),usec=(\d+)")
_BOARDS: dict[str, Callable[[Site], Board]] = {"server": OneServer, "sentinel": Primary, "cluster": Cluster}
# What a server answers that is there and cannot serve yet, or at the moment: it is worth asking again.
_FOR_NOW = (
    "LOADING",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "ASK ",
    "READONLY",
    "UNBLOCKED",
    "NOREPLICAS",
)


def _failure(what: str, error: ReplyError) -> StoreError:
    """Tell a server that is not ready from one that refuses."""
    if str(error).startswith(_FOR_NOW):
        return StoreUnavailable(f"the store is not ready: {error}")
    return StoreError(f"{what}: {error}")


class Calls:
    """The calls to the server, or to the servers, of a store."""

    def __init__(self, site: Site) -> None:
        self._board: Board = _BOARDS[site.kind](site)
        self._change = self._board.kept if site.replicas else self._board.call
        self._parked: dict[str, Connection] = {}
        self.listeners: list[CallListener] = []
        self._functions = {
            verb: (self._change if scripts.writes(verb) else self._board.call, scripts.function(verb))
            for verb in scripts.verbs()
        }

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
        send, name = self._functions[verb]
        try:
            return await send(floor, "FCALL", name, 1, floor, *args)
        except ReplyError as error:
            reason = str(error)
            if reason.startswith("NOQUEUE"):
                raise UnknownQueue(queue) from None
            if reason.startswith("SCHEMA"):
                raise SchemaMismatch(reason.removeprefix("SCHEMA ")) from None
            raise _failure(verb, error) from None

    async def command(self, key: str, *args: Any) -> Any:
        """Send a command that reads a key; StoreUnavailable or StoreError where it cannot be done."""
        try:
            return await self._board.call(key, *args)
        except ReplyError as error:
            raise _failure(args[0], error) from None

    async def change(self, key: str, *args: Any) -> Any:
        """Send a command that writes a key; StoreUnavailable or StoreError where it cannot be done."""
        try:
            return await self._change(key, *args)
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
        """Send a command that blocks, on a connection of its own; None also if the key moves meanwhile."""
        connection = self._parked.get(key)
        if connection is None:
            connection = self._parked[key] = self._board.parked(key)
        try:
            async with asyncio.timeout(timeout + ANSWER_PATIENCE):
                return await connection.call(*command)
        except ReplyError as error:
            if await self._board.moved(error):
                connection.close()
                return None
            raise _failure(command[0], error) from None
        except BaseException as error:
            # Nobody will read what this call still takes, so the server must not give it out.
            connection.close()
            if self._parked.get(key) is connection:
                del self._parked[key]
            if isinstance(error, TimeoutError):
                raise StoreUnavailable("the store does not answer: it was silent for too long") from None
            raise

    async def ping(self) -> None:
        """Raise StoreUnavailable unless all of the store can be used."""
        try:
            await self._board.ping()
        except ReplyError as error:
            raise _failure("PING", error) from None

    async def script_time(self) -> ScriptTime | None:
        """Tell how busy the servers are with functions; None where they may not be asked."""
        try:
            said = await self._board.everywhere("INFO", "commandstats")
        except ReplyError:
            return None
        found = [counted for counted in map(_SCRIPTS.search, said) if counted]
        return (
            ScriptTime(
                sum(int(counted[1]) for counted in found), sum(int(counted[2]) for counted in found) / 1e6
            )
            if found
            else None
        )

    async def check_server(self) -> None:
        """Refuse a server that may evict keys; where the setting cannot be read, trust it."""
        try:
            for answer in await self._board.everywhere("CONFIG", "GET", "maxmemory-policy"):
                if answer[1:] not in ([], [b"noeviction"]):
                    raise EvictionForbidden
        except (ReplyError, StoreUnavailable):
            return

    def close(self) -> None:
        """Close the connections."""
        self._board.close()
        for connection in self._parked.values():
            connection.close()
        self._parked.clear()
