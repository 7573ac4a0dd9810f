"""Lists and watches: taking from a long line asks little, and what moves in the tree is noticed."""

import asyncio
from contextlib import aclosing

from maitred.core.stages import HELD
from maitred.store.zookeeper.ledger import Ledger
from maitred.store.zookeeper.pending import PAUSE
from maitred.store.zookeeper.session import Create, Session
from maitred.store.zookeeper.tree import entry_name
from tests.zookeeper.conftest import Opener
from tests.zookeeper.party import RUN, batch_of, failed, into, newcomer


async def ghosts(ledger: Ledger, count: int) -> None:
    """Make index entries alone: to whoever lists, the line is as long as with jobs."""
    names = [entry_name(50, f"jid{number:010d}") for number in range(1_000_000, 1_000_000 + count)]
    path = ledger.tree.state("pending")
    for begin in range(0, count, 2_000):
        await ledger.session.multi([Create(f"{path}/{name}") for name in names[begin : begin + 2_000]])


async def test_b23_taking_from_60_000_pending_jobs_stays_bounded(connect: Opener, layout: str) -> None:
    ledger = await connect()
    await ghosts(ledger, 60_000)
    added = await ledger.intake.add("", [newcomer(f"k{n}", priority=n % 3) for n in range(150)])
    by_rank = sorted(range(150), key=lambda n: (n % 3, n))
    pending = ledger.pending()
    asked = 0

    async def count(self: Session, *arguments: object, **named: object) -> object:
        nonlocal asked
        asked += 1
        return await children(self, *arguments, **named)  # type: ignore[arg-type]

    children = Session.children
    Session.children = count  # type: ignore[method-assign, assignment]
    try:
        began = asyncio.get_running_loop().time()
        taken = []
        for _ in range(150):
            jid = await pending.next()
            assert jid
            taken.append(jid)
            await ledger.jobs.start(await ledger.jobs.read(jid), RUN, 1)
        seconds = asyncio.get_running_loop().time() - began
    finally:
        Session.children = children  # type: ignore[method-assign]
    assert taken == [added[n].jid for n in by_rank]
    assert asked == pending.listing.reads <= 1 + seconds / PAUSE


async def test_a_job_that_comes_is_seen_and_none_is_given_twice_from_one_list(ledger: Ledger) -> None:
    _, [first, second] = await batch_of(ledger, "a", "b", seal=False)
    pending = ledger.pending()
    assert [await pending.next(), await pending.next(), await pending.next()] == [first, second, None]
    [added] = await ledger.intake.add("", [newcomer("c", priority=1)])
    async with asyncio.timeout(30):
        await pending.listing.changed.wait()
        await asyncio.sleep(pending.listing.wait)
    assert await pending.next() == added.jid


async def test_b26_what_another_program_moves_is_noticed_by_a_watch(ledger: Ledger, connect: Opener) -> None:
    _, [first, second, third] = await batch_of(ledger, "a", "b", "c")
    changes = ledger.changes()
    assert await changes.everything() == {first, second, third}
    other = await connect()
    async with asyncio.timeout(30), aclosing(changes.follow()) as following:
        await other.jobs.start(await other.jobs.read(first), RUN, 1)
        await other.jobs.prioritise(second, 1)
        seen: set[str] = set()
        async for some in following:
            seen |= some
            if seen >= {first, second}:
                break
    assert third not in seen


async def test_what_ends_and_what_is_retried_is_noticed_without_listing_what_has_ended(
    ledger: Ledger,
) -> None:
    _, [first, second] = await batch_of(ledger, "a", "b")
    await failed(ledger, second, "estimating")
    changes = ledger.changes()
    listed = {listing.path.rpartition("/")[2] for listing in changes.listings}
    assert HELD in listed
    assert not {"failed", "completed", "deleted"} & listed
    assert await changes.everything() == {first}
    seen: set[str] = set()
    async with asyncio.timeout(30), aclosing(changes.follow()) as following:
        await into(ledger, first, "completed")
        await ledger.jobs.retry(second)
        async for some in following:
            seen |= some
            if seen == {first, second}:
                break


async def test_a_lost_session_wakes_those_who_follow(ledger: Ledger, connect: Opener) -> None:
    _, [first, _second] = await batch_of(ledger, "a", "b")
    watcher = await connect()
    changes = watcher.changes()
    await changes.everything()
    watcher.session._lose()
    async with asyncio.timeout(30), aclosing(changes.follow()) as following:
        await ledger.jobs.start(await ledger.jobs.read(first), RUN, 1)
        async for some in following:
            assert some == {first}
            break
