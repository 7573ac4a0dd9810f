"""A parlour on each store, on its own clock, with one server and one worker."""

from collections.abc import AsyncIterator

import pytest

from maitred.store.port import Stores
from tests.sessions.parlour import Parlour


@pytest.fixture
def kind() -> str:
    """Override: most of this is not about the store, and one that is shared by processes is the usual one."""
    return "valkey"


@pytest.fixture
def clock() -> None:
    """Override: the stores are on their own clock."""


@pytest.fixture
async def empty(stores: Stores, queue_name: str) -> AsyncIterator[Parlour]:
    """A parlour with a server and no worker."""
    parlour = Parlour(stores, queue_name)
    await parlour.set()
    async with parlour.server() as parlour.address:
        yield parlour


@pytest.fixture
async def parlour(empty: Parlour) -> AsyncIterator[Parlour]:
    """A parlour with a worker of two slots."""
    async with empty.worker():
        yield empty
