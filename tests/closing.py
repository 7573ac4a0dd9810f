"""What a test opens is closed when it fails, too: a socket that stays open is blamed on an innocent test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar


class Closable(Protocol):
    async def close(self) -> None: ...


T = TypeVar("T", bound=Closable)


@asynccontextmanager
async def closing(opened: T) -> AsyncIterator[T]:
    """Give what was opened, and close it at the end of the block."""
    try:
        yield opened
    finally:
        await opened.close()
