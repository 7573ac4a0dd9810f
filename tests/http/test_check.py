"""Checking a queue over HTTP: what is broken is named, and repaired if asked."""

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from maitred.store.valkey import keys
from tests.conftest import Servers
from tests.http.guest import Guest, is_problem


@pytest.fixture(params=["valkey"])
def kind(request: pytest.FixtureRequest) -> str:
    """The reference cannot be damaged from outside."""
    return str(request.param)


@pytest.fixture
async def server(servers: Servers, kind: str) -> AsyncIterator["Redis"]:
    client = Redis.from_url(servers.url(kind))
    yield client
    await client.aclose()


async def test_damage_is_named_and_repaired_if_asked(guest: Guest, server: "Redis") -> None:
    await guest.submits()
    sound = await guest.http.post(f"{guest.url}/check")
    assert sound.json() == {"queue": guest.store.queue, "violations": []}
    await server.hset(keys.prefix(guest.store.queue) + "Ids", "ghost", "nowhere!")
    found = (await guest.http.post(f"{guest.url}/check")).json()["violations"]
    assert {violation["repaired"] for violation in found} == {False}
    repaired = (await guest.http.post(f"{guest.url}/check", json={"repair": True})).json()["violations"]
    assert {violation["repaired"] for violation in repaired} == {True}
    assert (await guest.http.post(f"{guest.url}/check")).json()["violations"] == []
    assert is_problem(await guest.http.post(f"{guest.url}/check", json={"repair": 1}), 422, "invalid")
