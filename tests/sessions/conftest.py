"""A parlour on each store, on its own clock, with one server and one worker."""

from collections.abc import AsyncIterator

import pytest

from maitred.store.port import Stores
from tests.conftest import Servers, connect
from tests.sessions.parlour import Parlour


@pytest.fixture
def kind() -> str:
    """Override: most of this is not about the store, and one that is shared by processes is the usual one."""
    return "valkey"


@pytest.fixture
async def stores(
    servers: Servers, kind: str, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Stores]:
    """Override: the stores on their own clock, with no queue but the test's own.

    Whoever serves looks after all queues, and others have left many.
    """
    stores = connect(servers, kind, None)

    async def names() -> list[str]:
        return [queue_name]

    monkeypatch.setattr(stores, "names", names)
    yield stores
    await stores.close()


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
