"""A desk that foresees, a queue with batches, and an address that reports go to, over each store."""

from collections.abc import AsyncIterator

import pytest

from maitred.store.port import Store, Stores
from tests.conftest import Clock, Servers, connect
from tests.service.address import Address, listening
from tests.service.lookout import Lookout, looking_out
from tests.service.office import QUICK, Office, opened


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


@pytest.fixture
async def office(store: Store, clock: Clock) -> Office:
    return await opened(store, clock, QUICK)


@pytest.fixture
async def address() -> AsyncIterator[Address]:
    async with listening() as address:
        yield address
