"""A desk that foresees, over each store."""

from collections.abc import AsyncIterator

import pytest

from maitred.store.port import Store, Stores
from tests.conftest import Clock, Servers, connect
from tests.service.lookout import Lookout, looking_out


@pytest.fixture
async def lookout(stores: Stores, store: Store, clock: Clock) -> AsyncIterator[Lookout]:
    async with looking_out(stores, store.queue, clock) as lookout:
        yield lookout


@pytest.fixture
async def elsewhere(servers: Servers, kind: str, stores: Stores, clock: Clock) -> AsyncIterator[Stores]:
    """The same store, as a second server reaches it."""
    if kind == "memory":
        yield stores
        return
    other = connect(servers, kind, clock)
    yield other
    await other.close()
