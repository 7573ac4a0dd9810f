"""What the shell offers while a command is typed, beyond the commands themselves: the names of the queues."""

from typing import Any

PATIENCE = 1.0


def queue_names(incomplete: str, ctx: Any) -> list[str]:
    """Give the queues of the server that would be asked; none if it does not answer at once."""
    # Nobody else should wait for these.
    import asyncio  # noqa: PLC0415

    from maitred.cli.address import find_server  # noqa: PLC0415
    from maitred.cli.calling import find_key  # noqa: PLC0415
    from maitred.client import Client  # noqa: PLC0415
    from maitred.errors import MaitredError  # noqa: PLC0415

    async def ask() -> list[str]:
        server, data = ctx.params.get("server"), ctx.params.get("data")
        async with Client(find_server(server, data), key=find_key(), retries=()) as client:
            return [queue.name for queue in (await client.queues()).items]

    async def ask_briefly() -> list[str]:
        return await asyncio.wait_for(ask(), PATIENCE)

    try:
        return [name for name in asyncio.run(ask_briefly()) if name.startswith(incomplete)]
    except (MaitredError, TimeoutError):
        return []
