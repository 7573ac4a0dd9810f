"""A desk that foresees, over each store."""

from collections.abc import AsyncIterator

import pytest

from maitred.store.port import Store, Stores
from tests.conftest import Clock
from tests.service.lookout import Lookout, looking_out


@pytest.fixture
async def lookout(stores: Stores, store: Store, clock: Clock) -> AsyncIterator[Lookout]:
    async with looking_out(stores, store, clock) as lookout:
        yield lookout
