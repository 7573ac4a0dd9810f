"""The app over each store, asked without a network, on a clock that the tests set."""

from collections.abc import AsyncIterator

import httpx
import pytest

from maitred.http import create_app
from maitred.service.desk import Desk
from maitred.store.port import Store, Stores
from tests.http.guest import HOST, Guest
from tests.http.house import House, open_house


@pytest.fixture
async def http(stores: Stores) -> AsyncIterator[httpx.AsyncClient]:
    # Settings that a test changes are to be seen at once, so the desk's clock never stands still.
    ticks = iter(range(1_000_000))
    app = create_app(Desk(stores, clock=lambda: float(next(ticks))), hosts=[HOST])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=f"http://{HOST}") as http:
        yield http


@pytest.fixture
def guest(http: httpx.AsyncClient, store: Store) -> Guest:
    return Guest(http, store)


@pytest.fixture
async def house(queue_name: str) -> AsyncIterator[House]:
    async with open_house(queue_name) as house:
        yield house
