"""What idle queues cost a server: hardly any command."""

from contextlib import AsyncExitStack

from redis.asyncio import Redis

from maitred.core.settings import Settings
from tests.conftest import Servers, connect
from tests.http.house import open_house
from tests.waiting import eventually

QUEUES = 40
ROUNDS = 3


async def counted(client: "Redis", command: str) -> int:
    """Count how often a command was called, by scripts too."""
    found = (await client.info("commandstats")).get(f"cmdstat_{command}")
    return found["calls"] if found else 0


async def test_idle_queues_are_not_asked_for_one_by_one(servers: Servers, queue_name: str) -> None:
    async with AsyncExitStack() as stack:
        client: Redis = await stack.enter_async_context(Redis.from_url(servers.url("valkey")))
        stores = connect(servers, "valkey", None)
        stack.push_async_callback(stores.close)
        for number in range(QUEUES):
            await stores.queue(f"{queue_name}.{number}").configure(Settings())
        await stack.enter_async_context(open_house(queue_name, stores))

        async def scripts_in_some_rounds() -> int:
            """Count scripts while the server looks so often which queues there are."""
            rounds = await counted(client, "smembers") + ROUNDS
            before = await counted(client, "fcall")

            async def passed() -> bool:
                return await counted(client, "smembers") >= rounds

            await eventually(passed)
            return await counted(client, "fcall") - before

        async def at_rest() -> bool:
            return await scripts_in_some_rounds() < QUEUES

        await eventually(at_rest)
