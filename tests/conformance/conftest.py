"""What scenarios are played on."""

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from maitred.core.settings import MINUTE, Settings
from maitred.store.port import Store
from tests.conformance.floor import Floor
from tests.conformance.ledger import Ledger
from tests.conformance.party import Party
from tests.conftest import Clock, Servers


@pytest.fixture
async def party(store: Store, clock: Clock) -> Party:
    """A queue whose leases outlast the scenario."""
    await store.configure(Settings(lease=60 * MINUTE))
    return Party(store, clock)


@pytest.fixture
async def floor(store: Store, clock: Clock) -> AsyncIterator[Floor]:
    """A floor; whatever a test does to it, the invariants hold at its end."""
    floor = Floor(store, clock)
    yield floor
    assert await store.check() == []


@pytest.fixture
async def ledger(store: Store, clock: Clock) -> AsyncIterator[Ledger]:
    """A queue with stages; whatever a test does to it, the invariants hold at its end."""
    ledger = Ledger(store, clock)
    yield ledger
    assert await store.check() == []


@pytest.fixture
async def server(servers: Servers, kind: str) -> AsyncIterator["Redis"]:
    """The server itself, for tests that damage what is kept there."""
    client = Redis.from_url(servers.url(kind))
    yield client
    await client.aclose()
