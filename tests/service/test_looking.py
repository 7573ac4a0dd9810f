"""How a server comes to its picture and keeps it: looking, following, and looking again."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from maitred.core.events import Entry
from maitred.core.job import Order, Submitter
from maitred.core.settings import SECOND
from maitred.errors import StoreUnavailable
from maitred.service.foresight import Foresight
from maitred.service.lanes import standing
from maitred.store.port import Store, Stores
from tests.conftest import Clock, Servers, connect
from tests.service.lookout import Lookout, looking_out
from tests.waiting import eventually


async def test_entries_that_are_missing_make_it_look_again(lookout: Lookout, clock: Clock) -> None:
    await lookout.works(1)
    await lookout.heard()
    before = lookout.foresight.picture
    clock.now += 700 * SECOND  # nobody is told any more
    await lookout.store.put([Order("unheard", Submitter("user", "1"), "handler:grade", b"")])
    await lookout.store.survey(600)
    await lookout.store.put([Order("heard", Submitter("user", "2"), "handler:grade", b"")])

    async def looked_again() -> bool:
        return lookout.foresight.picture is not before and lookout.foresight.ready.is_set()

    await eventually(looked_again, 20)
    await lookout.heard()
    picture = lookout.foresight.picture
    assert picture
    assert len(picture.lanes) == (await lookout.store.status()).waiting


async def test_what_is_missed_while_looking_makes_it_look_again(store: Store, clock: Clock) -> None:
    for number in range(3):
        await store.put([Order(f"j{number}", Submitter("user", "1"), "handler:grade", b"")])
    forgetful = Forgetful(store)
    async with foreseeing(forgetful, clock) as foresight:
        assert forgetful.missed, "it looked while something was lost"
        assert foresight.picture
        assert len(foresight.picture.lanes) == (await store.status()).waiting


async def test_a_past_that_is_kept_no_longer_is_not_waited_for(store: Store, clock: Clock) -> None:
    await store.survey(600)
    await store.put([Order("before", Submitter("user", "1"), "handler:grade", b"")])
    overrun = Overrun(store)
    async with foreseeing(overrun, clock) as foresight:
        assert foresight.picture
        assert len(foresight.picture.lanes) == 2


@pytest.fixture
async def other_stores(servers: Servers, kind: str, stores: Stores, clock: Clock) -> AsyncIterator[Stores]:
    """The same store over connections of their own; memory has none."""
    if kind == "memory":
        yield stores
        return
    others = connect(servers, kind, clock)
    yield others
    await others.close()


async def test_two_servers_foresee_the_same(
    stores: Stores, other_stores: Stores, store: Store, clock: Clock
) -> None:
    queue = store.queue
    async with (
        looking_out(stores, queue, clock) as one,
        foreseeing(other_stores.queue(queue), clock) as other,
    ):
        await one.works(1)
        ids = [await one.submit(f"j{number}") for number in range(6)]
        await one.starts()
        await one.ends(ids[0])
        await store.cancel(ids[3], "")
        await store.release(ids[5])
        await one.heard()
        last = one.foresight.picture and one.foresight.picture.last

        async def caught_up() -> bool:
            picture = other.picture
            settled = picture is not None and picture.settled and not picture.changed_house
            return settled and picture is not None and picture.last == last and other.current

        await eventually(caught_up, 20)
        views = [view for view in await store.read(ids) if view and view.position]
        assert len(views) == 3
        for view in views:
            place = standing(view)
            assert other.position(*place) == one.foresight.position(*place) == view.position
            mine, theirs = (each.foresee(*place, clock.now) for each in (one.foresight, other))
            assert mine
            assert theirs
            # How wide a range is depends on how well a server's own quotes held.
            assert (mine.expected, mine.at_latest) == (theirs.expected, theirs.at_latest)


async def test_a_store_that_was_lost_is_looked_at_again(store: Store, clock: Clock) -> None:
    lost = Losing(store)
    async with foreseeing(lost, clock) as foresight:
        lost.away = True
        await store.put([Order("a", Submitter("user", "1"), "handler:grade", b"")])

        async def forgotten() -> bool:
            return foresight.picture is None

        await eventually(forgotten, 20)
        lost.away = False
        await asyncio.wait_for(foresight.ready.wait(), 20)
        assert foresight.picture
        assert len(foresight.picture.lanes) == 1


class Losing:
    """A store that does not tell while it is away."""

    def __init__(self, store: Store) -> None:
        self._store, self.away = store, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def news(self, after: str, timeout: float) -> list[Entry]:
        if self.away:
            raise StoreUnavailable
        told = await self._store.news(after, timeout)
        if self.away:
            raise StoreUnavailable
        return told


class Forgetful:
    """A store that, once, lets something happen while it is looked at, and does not tell the first of it."""

    def __init__(self, store: Store) -> None:
        self._store, self.missed = store, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def news(self, after: str, timeout: float) -> list[Entry]:
        if self.missed:
            return await self._store.news(after, timeout)
        self.missed = True
        for name in ("lost", "told"):
            await self._store.put([Order(name, Submitter("user", "1"), "handler:grade", b"")])
        return (await self._store.news(after, 1))[1:]


class Overrun:
    """A store in which, once, more happens after a survey than it keeps."""

    def __init__(self, store: Store) -> None:
        self._store, self.calls = store, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def news(self, after: str, timeout: float) -> list[Entry]:
        self.calls += 1
        if self.calls == 1:
            await self._store.put([Order("later", Submitter("user", "1"), "handler:grade", b"")])
        entries = await self._store.news(after, timeout)
        return entries if after != "0-0" else entries[-1:]


@contextlib.asynccontextmanager
async def foreseeing(store: Any, clock: Clock) -> AsyncIterator[Foresight]:
    """Foresee a queue, and be ready."""
    foresight = Foresight(store, clock=lambda: clock.now / SECOND)
    task = asyncio.create_task(foresight.run())
    try:
        await asyncio.wait_for(foresight.ready.wait(), 20)
        yield foresight
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
