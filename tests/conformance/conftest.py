"""A queue whose leases outlast the scenario."""

import pytest

from maitred.core.settings import MINUTE, Settings
from maitred.store.port import Store
from tests.conformance.party import Party
from tests.conftest import Clock


@pytest.fixture
async def party(store: Store, clock: Clock) -> Party:
    """A queue whose leases outlast the scenario."""
    await store.configure(Settings(lease=60 * MINUTE))
    return Party(store, clock)
