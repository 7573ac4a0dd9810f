"""The ticker: it calls at the moment that the store named, and goes on when the store was lost."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest

from maitred.core.job import Moment, Order, Submitter
from maitred.core.settings import MINUTE, SECOND, Settings
from maitred.errors import SchemaMismatch, StoreUnavailable
from maitred.service.foresights import Foresights
from maitred.service.staff import Staff
from maitred.service.ticker import LONGEST, Ticker
from maitred.store.memory import MemoryStore, MemoryStores
from tests.conftest import Clock
from tests.waiting import eventually


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


class Counting(MemoryStore):
    """A queue that notes when it is ticked."""

    ticks = 0

    async def tick(self) -> Moment:
        self.ticks += 1
        return await super().tick()


class Hearing(NamedTuple):
    """A ticker that hears what happens in its queue, and for whom it has woken the staff."""

    ticker: Ticker
    store: Counting
    woken: list[str]

    async def until_idle(self) -> None:
        """Tick until the queue is left alone."""
        before = -1
        while before != self.store.ticks:
            before = self.store.ticks
            await self.ticker.tick()


class Errands(Staff):
    """Staff that only notes for which queues it is woken."""

    def __init__(self, woken: list[str]) -> None:
        self._woken = woken

    def wake(self, queue: str) -> None:
        self._woken.append(queue)


@pytest.fixture
async def hearing() -> AsyncIterator[Hearing]:
    stores, store = MemoryStores(), Counting("q")
    stores._queues["q"] = store
    await store.configure(Settings(lease=60 * MINUTE))
    foresights, woken = Foresights(stores), list[str]()
    listening = asyncio.create_task(foresights.run())
    await asyncio.sleep(0)
    foresight = foresights.of("q")
    assert foresight
    await foresight.ready.wait()
    hearing = Hearing(Ticker(stores, foresights, [Errands(woken)]), store, woken)
    await hearing.until_idle()
    ticking = asyncio.create_task(hearing.ticker.run())
    yield hearing
    for task in (ticking, listening):
        task.cancel()
    await asyncio.gather(ticking, listening, return_exceptions=True)


async def test_a_queue_in_which_nothing_happens_is_left_alone_until_something_does(hearing: Hearing) -> None:
    before = hearing.store.ticks
    await hearing.store.put([order(delay=100)])
    await eventually(lambda: asyncio.sleep(0, hearing.store.ticks > before), 20)
    assert not hearing.woken


async def test_what_falls_due_in_an_idle_queue_starts(hearing: Hearing) -> None:
    await hearing.store.join("w", 1, ["command"])
    await hearing.store.put([order(delay=1.5)])
    await eventually(lambda: asyncio.sleep(0, bool(hearing.ticker._idle_until)), 20)
    await eventually(hearing.store.running, 20)


async def test_a_queue_with_work_left_is_not_left_alone_and_its_staff_is_woken(hearing: Hearing) -> None:
    await hearing.store.join("w", 1, ["command"])
    await hearing.store.put([order()._replace(callback=True)])
    await eventually(lambda: asyncio.sleep(0, len(hearing.woken) > 1), 20)
    assert set(hearing.woken) == {"q"}
