"""The ticker: it calls at the moment that the store named, and goes on when the store was lost."""

import asyncio
import contextlib

import pytest

from maitred.core.job import Moment, Order, Submitter
from maitred.core.settings import SECOND, Settings
from maitred.errors import SchemaMismatch, StoreUnavailable
from maitred.service.ticker import LONGEST, Ticker
from maitred.store.memory import MemoryStore, MemoryStores
from tests.conftest import Clock


def order(delay: float = 0, expires: int = 0) -> Order:
    return Order("a", Submitter("user", "1"), "command", b"", delay=round(delay * SECOND), expires_at=expires)


async def test_it_waits_for_the_next_moment_but_at_most_a_second(clock: Clock) -> None:
    stores = MemoryStores(clock=clock)
    ticker = Ticker(stores)
    assert await ticker.tick() == LONGEST
    await stores.queue("q").configure(Settings())
    await stores.queue("q").put([order(delay=0.25)])
    assert await ticker.tick() == pytest.approx(0.25)
    await stores.queue("q").put([order(delay=100)])
    clock.at(0.3)
    assert await ticker.tick() == LONGEST


async def test_it_does_what_the_clock_asks_for(clock: Clock) -> None:
    stores = MemoryStores(clock=clock)
    store = stores.queue("q")
    await store.configure(Settings())
    await store.put([order(expires=clock.now + 5 * SECOND)])
    clock.at(6)
    await Ticker(stores).tick()
    assert (await store.status()).counts["failed"] == 1


class Flaky(MemoryStores):
    """A store that comes and goes."""

    lost = True

    async def names(self) -> list[str]:
        if self.lost:
            raise StoreUnavailable
        return await super().names()


async def test_it_outlives_a_lost_store(clock: Clock) -> None:
    stores = Flaky(clock=clock)
    await stores.queue("q").configure(Settings())
    ticker = Ticker(stores)
    assert await ticker.tick() == LONGEST
    stores.lost = False
    await stores.queue("q").put([order(delay=0.5)])
    assert await ticker.tick() == pytest.approx(0.5)


class Foreign(MemoryStore):
    """A queue that another version wrote."""

    async def tick(self) -> Moment:
        raise SchemaMismatch


async def test_one_bad_queue_does_not_stop_the_others(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    stores = MemoryStores(clock=clock)
    bad = stores._queues["a"] = Foreign("a", clock=clock)
    for store in (bad, stores.queue("z")):
        await store.configure(Settings())
    await stores.queue("z").put([order(delay=0.25)])
    ticker = Ticker(stores)
    assert await ticker.tick() == pytest.approx(0.25)
    assert await ticker.tick() == pytest.approx(0.25)
    assert capsys.readouterr().out.count("a queue could not be ticked") == 1


class Watched(MemoryStores):
    """A store that tells when it was asked twice."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.twice = asyncio.Event()

    async def names(self) -> list[str]:
        self.asked += 1
        if self.asked == 2:
            self.twice.set()
        return await super().names()


async def test_it_ticks_again_and_again_until_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maitred.service.ticker.LONGEST", 0.001)
    stores = Watched()
    running = asyncio.create_task(Ticker(stores).run())
    await stores.twice.wait()
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert running.cancelled()
