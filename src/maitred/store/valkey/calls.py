"""How scripts are called: loads the library when the server does not know it, and names what went wrong."""

from typing import Any

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from maitred.errors import EvictionForbidden, SchemaMismatch, StoreError, StoreUnavailable, UnknownQueue
from maitred.store.valkey import scripts


class Calls:
    """The connections to one server."""

    def __init__(self, client: Redis) -> None:
        """Take a client that answers bytes."""
        self._client = client
        self._functions = {verb: scripts.function(verb) for verb in scripts.verbs()}

    async def function(self, verb: str, queue: str, floor: str, *args: Any) -> Any:
        """Call a verb; UnknownQueue, SchemaMismatch, StoreUnavailable or StoreError where it cannot be."""
        name = self._functions[verb]
        try:
            return await self.command("FCALL", name, 1, floor, *args)
        except ResponseError as error:
            reason = str(error)
            if "Function not found" in reason:
                await self.load()
                return await self.function(verb, queue, floor, *args)
            if reason.startswith("NOQUEUE"):
                raise UnknownQueue(queue) from None
            if reason.startswith("SCHEMA"):
                raise SchemaMismatch(reason.removeprefix("SCHEMA ")) from None
            raise StoreError(f"{verb}: {reason}") from error

    async def load(self) -> None:
        """Put the library into the server; another caller may have done so at the same time."""
        await self.command("FUNCTION", "LOAD", "REPLACE", scripts.library())

    async def command(self, *args: Any) -> Any:
        """Send one command; StoreUnavailable if the server does not answer."""
        try:
            return await self._client.execute_command(*args)  # type: ignore[no-untyped-call]
        except (RedisConnectionError, RedisTimeoutError, OSError) as error:
            raise StoreUnavailable(f"the store does not answer: {error}") from error
        except ResponseError:
            raise
        except RedisError as error:
            raise StoreError(str(error)) from error

    async def pop_all(self, key: str, timeout: float) -> list[bytes]:
        """Wait for a list to have entries, and take all of them."""
        answer = await self.command("BLMPOP", timeout, 1, key, "LEFT", "COUNT", 1000)
        return list(answer[1]) if answer else []

    async def check_server(self) -> None:
        """Refuse a server that may evict keys; where the setting cannot be read, trust it."""
        try:
            answer = await self.command("CONFIG", "GET", "maxmemory-policy")
        except ResponseError:
            return
        policy = answer.get(b"maxmemory-policy") if isinstance(answer, dict) else answer[1]
        if policy != b"noeviction":
            raise EvictionForbidden

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()
