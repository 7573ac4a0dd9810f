"""Waiting for what other processes and the store do, which no event of ours announces."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def eventually(look: Callable[[], Awaitable[T]], patience: float = 60) -> T:
    """Look until there is something to see; TimeoutError after a minute."""
    async with asyncio.timeout(patience):
        while not (seen := await look()):  # noqa: ASYNC110 - the store tells nobody
            await asyncio.sleep(0.005)
    return seen
