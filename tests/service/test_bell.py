"""A bell rings shortly after news of the kinds that it listens for, once for all of them."""

import asyncio

from maitred.core.events import BatchChanged, Changed, Ended, Entry
from maitred.core.job import Phase
from maitred.service.bell import Bell


def entry(*events: BatchChanged | Changed | Ended) -> Entry:
    return Entry("1-0", 1, 0, list(events))


async def test_a_bell_rings_once_for_all_that_it_hears_meanwhile() -> None:
    rung = asyncio.Event()
    rings: list[None] = []

    def wake() -> None:
        rings.append(None)
        rung.set()

    bell = Bell(wake, Ended, Changed)
    bell.hear([entry(BatchChanged("bid0000000000"))])
    bell.hear([entry(Ended(1, "")), entry(Changed(2, Phase.WAITING, 0))])
    bell.hear([entry(Changed(3, Phase.WAITING, 0))])
    await asyncio.wait_for(rung.wait(), 20)
    assert len(rings) == 1
    rung.clear()
    bell.missed()
    await asyncio.wait_for(rung.wait(), 20)
    assert len(rings) == 2


async def test_a_bell_does_not_ring_for_other_news() -> None:
    rung: list[str] = []
    deaf, heard = Bell(lambda: rung.append("deaf"), Ended), asyncio.Event()
    other = Bell(heard.set, BatchChanged)
    for bell in (deaf, other):
        bell.hear([entry(BatchChanged("bid0000000000"))])
    await asyncio.wait_for(heard.wait(), 20)
    assert rung == []
