"""Asking a server: one client for one question."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from maitred.cli.address import find_server
from maitred.client import Client

T = TypeVar("T")


def ask(server: str | None, data: Path, question: Callable[[Client], Awaitable[T]]) -> T:
    """Ask the server that is named or noted; `ServerUnreachable` if there is none."""

    async def asking() -> T:
        async with Client(find_server(server, data)) as client:
            return await question(client)

    return asyncio.run(asking())
