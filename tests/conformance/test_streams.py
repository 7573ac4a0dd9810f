"""Many queues whose news are waited for together: whoever waits hears of its own queue, and all of it."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from maitred.core.events import Entry
from maitred.core.job import Order, Submitter
from maitred.core.settings import Settings
from maitred.errors import StoreUnavailable
from maitred.store.port import Store, Stores
from maitred.store.valkey import calls, streams
from tests.conftest import SERVERS, Servers, connect
from tests.waiting import eventually

QUEUES = 30
# How long a reader waits before it asks again, in seconds.
TURN = 0.5


@pytest.fixture(params=SERVERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def hurried(
    servers: Servers, kind: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[dict[str, Store]]:
    """Queues in which silence comes sooner than usual."""
    monkeypatch.setattr(calls, "LEAST", 0.1)
    for name, seconds in {"COMMON": 0.2, "SILENCE": 0.1, "FRESH": 0.5}.items():
        monkeypatch.setattr(streams, name, seconds)
    stores: Stores = connect(servers, kind, None)
    found = {f"q{number}": stores.queue(f"q{number}") for number in range(QUEUES)}
    for store in found.values():
        await store.configure(Settings())
    yield found
    await stores.close()


async def put(store: Store, id: str = "a") -> None:
    await store.put([Order(id, Submitter("user", "1"), "command", b"")])


async def answers(store: Store) -> bool:
    try:
        await store.settings()
    except StoreUnavailable:
        return False
    return True


async def begin(store: Store) -> str:
    """Begin to listen to a queue; give the last entry before that."""
    return (await store.survey(600)).last_id


async def hear(store: Store, after: str) -> list[Entry]:
    """Ask again and again, until there is something to hear."""
    while not (entries := await store.news(after, TURN)):
        pass
    return entries


async def test_whoever_waits_for_a_silent_queue_hears_what_happens_there_and_nothing_else(
    hurried: dict[str, Store],
) -> None:
    lasts = {name: await begin(store) for name, store in hurried.items()}
    silent = await asyncio.gather(*(store.news(lasts[name], TURN) for name, store in hurried.items()))
    assert not any(silent)
    waiting = {name: asyncio.create_task(hear(store, lasts[name])) for name, store in hurried.items()}
    for some in (["q3"], ["q1", "q2"], [name for name in hurried if name not in {"q1", "q2", "q3"}]):
        for name in some:
            await put(hurried[name])
        for entries in await asyncio.gather(*(waiting.pop(name) for name in some)):
            assert len(entries) == 1
        assert not any(task.done() for task in waiting.values())


async def test_a_busy_queue_among_silent_ones_is_heard_without_a_gap(hurried: dict[str, Store]) -> None:
    lasts = {name: await begin(store) for name, store in hurried.items()}
    others = [
        asyncio.create_task(hear(store, lasts[name])) for name, store in hurried.items() if name != "q0"
    ]
    busy, last, numbers = hurried["q0"], lasts["q0"], list[int]()
    for number in range(40):
        await put(busy, f"j{number}")
        if number % 8 == 7:
            assert not await hurried["q1"].news(lasts["q1"], TURN), "it is silent, and so is the busy one"
        entries = await hear(busy, last)
        last = entries[-1].id
        numbers += [entry.number for entry in entries]
    assert numbers == list(range(numbers[0], numbers[0] + 40))
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def test_two_readers_of_one_queue_hear_each_what_it_has_not_heard(hurried: dict[str, Store]) -> None:
    store = hurried["q0"]
    first = await begin(store)
    await put(store, "a")
    [entry] = await hear(store, first)
    behind = asyncio.create_task(hear(store, first))
    ahead = asyncio.create_task(hear(store, entry.id))
    assert await behind == [entry]
    await put(store, "b")
    [newer] = await ahead
    later = [asyncio.create_task(hear(store, newer.id)), asyncio.create_task(hear(store, newer.id))]
    assert not await store.news(newer.id, TURN)
    await put(store, "c")
    one, other = await asyncio.gather(*later)
    assert one == other
    assert one[0].number == newer.number + 1


async def test_whoever_waits_is_told_that_the_store_was_lost_and_can_ask_again(
    hurried: dict[str, Store], servers: Servers, kind: str
) -> None:
    lost: list[Store] = []

    async def hear_again(store: Store, after: str) -> list[Entry]:
        while True:
            try:
                return await hear(store, after)
            except StoreUnavailable:
                lost.append(store)

    lasts = {name: await begin(store) for name, store in hurried.items()}
    waiting = [asyncio.create_task(hear_again(store, lasts[name])) for name, store in hurried.items()]
    assert not await hurried["q0"].news(lasts["q0"], TURN)
    async with Redis.from_url(servers.url(kind)) as client:
        await client.client_kill_filter(_type="normal", skipme=True)
    await eventually(lambda: answers(hurried["q0"]))
    for store in hurried.values():
        await put(store)
    assert [len(entries) for entries in await asyncio.gather(*waiting)] == [1] * QUEUES
    assert lost
