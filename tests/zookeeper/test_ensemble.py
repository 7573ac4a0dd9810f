"""B25: three servers, of which the leader is killed in the middle of the work."""

import asyncio

from maitred.store.zookeeper.check import check
from maitred.store.zookeeper.ledger import Ledger
from maitred.store.zookeeper.session import Session
from tests.waiting import eventually
from tests.zookeeper.party import batch_of
from tests.zookeeper.server import Ensemble

JOBS = 40


async def carry(ledger: Ledger, jids: list[str], ends: list[str]) -> None:
    """Take jobs through all their stages, each step once."""
    for jid in jids:
        job = await ledger.jobs.read(jid)
        run = jid.encode()
        while job.state != "completed":
            await ledger.jobs.start(job, run, 1)
            job = await ledger.jobs.advance(jid, run, b"{}")
        ends.append(jid)


async def test_b25_the_leader_is_lost_and_work_goes_on(ensemble: Ensemble, layout: str) -> None:
    ledgers = [
        Ledger(Session(ensemble.hosts, timeout=15, patience=30), "/t", layout=layout)  # type: ignore[arg-type]
        for _ in range(2)
    ]
    try:
        for ledger in ledgers:
            await ledger.open()
        one, other = ledgers
        bid, jids = await batch_of(one, *(f"k{n}" for n in range(JOBS)))
        lock = await one.batches.lock(bid, "clerk", b"c" * 16)
        assert lock
        lost: list[int] = []
        for ledger in ledgers:
            ledger.session.on_lost(lambda: lost.append(1))
        ends: list[str] = []
        work = asyncio.gather(carry(one, jids[::2], ends), carry(other, jids[1::2], ends))
        await eventually(lambda: asyncio.sleep(0, len(ends) >= 5))
        killed = ensemble.leader()
        await asyncio.to_thread(killed.kill)
        await work
        assert sorted(ends) == jids
        assert not lost
        assert await one.locks.holds(lock)
        assert await other.batches.lock(bid, "other", b"o" * 16) is None
        assert (await one.reader.counts(bid))["completed"] == JOBS
        assert (await one.jobs.read(jids[0])).last == "notify"
        await one.session.sync(one.tree.root)
        assert await check(one) == []
    finally:
        for ledger in ledgers:
            await ledger.close()
