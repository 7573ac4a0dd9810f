"""Sessions: what is lost with one, what a cut connection leaves in doubt, and a server that is not there."""

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from maitred.errors import LockLost, StoreUnavailable, TooLarge
from maitred.store.zookeeper.check import check
from maitred.store.zookeeper.ledger import Ledger
from maitred.store.zookeeper.session import Create, Delete, Put, Refused, Session
from tests.closing import closing
from tests.ports import free_ports
from tests.waiting import eventually
from tests.zookeeper.conftest import Opener
from tests.zookeeper.party import RUN, batch_of, batch_order, everything, newcomer
from tests.zookeeper.server import ZooKeeper

OTHER_RUN = b"o" * 16


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[ZooKeeper]:
    """A server that the test may hurt."""
    server = ZooKeeper(tmp_path / "own", free_ports(1)[0])
    server.start()
    server.await_ready()
    yield server
    server.stop()


@pytest.fixture
async def frail(own_server: ZooKeeper) -> AsyncIterator[Ledger]:
    async with _opened(own_server, timeout=2) as ledger:
        yield ledger


@asynccontextmanager
async def _opened(server: ZooKeeper, timeout: float) -> AsyncIterator[Ledger]:
    async with closing(Ledger(Session(server.host, timeout=timeout, patience=20), "/frail")) as ledger:
        await ledger.open()
        yield ledger


def end_session(session: Session) -> None:
    """Close a session from outside."""
    other = KazooClient(session.hosts, client_id=session._client.client_id)
    other.start()
    other.stop()
    other.close()


async def test_no_server_is_an_error_in_words(tmp_path: Path) -> None:
    async with closing(Ledger(Session(f"127.0.0.1:{free_ports(1)[0]}", patience=0.3), "/none")) as ledger:
        with pytest.raises(StoreUnavailable, match="does not answer"):
            await ledger.open()
        with pytest.raises(StoreUnavailable):
            await ledger.batches.create(batch_order())


async def test_whoever_is_stopped_while_it_connects_leaves_no_session(own_server: ZooKeeper) -> None:
    session = Session(own_server.host, patience=5)
    own_server.signal(signal.SIGSTOP)
    try:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await session.open()
    finally:
        own_server.signal(signal.SIGCONT)
    await session.close()
    assert session.id == 0

    async def is_alone() -> bool:
        # The one connection is that of the question.
        return "Connections: 1\n" in own_server.ask("srvr")

    await eventually(is_alone)
    assert not [thread for thread in threading.enumerate() if "kazoo" in repr(getattr(thread, "_target", ""))]


async def test_a_refused_multi_changes_nothing_and_says_where(ledger: Ledger) -> None:
    path = f"{ledger.tree.root}/x"
    await ledger.session.multi([Create(path, b"1")])
    with pytest.raises(Refused) as refused:
        await ledger.session.multi([Put(path, b"2"), Create(f"{path}/y"), Delete(f"{path}/z")])
    assert (refused.value.why, refused.value.path) == ("missing", f"{path}/z")
    node = await ledger.session.get(path)
    assert node
    assert (node.data, node.children) == (b"1", 0)
    with pytest.raises(Refused) as refused:
        await ledger.session.multi([Put(path, b"2", 7)])
    assert refused.value.why == "version"


async def test_what_would_drop_the_connection_is_not_sent(ledger: Ledger) -> None:
    with pytest.raises(TooLarge):
        await ledger.session.multi([Create(f"{ledger.tree.root}/x", b"x" * 1_100_000)])


async def test_a_lost_session_loses_its_locks_tells_it_and_goes_on_as_a_new_one(
    ledger: Ledger, connect: Opener
) -> None:
    _bid, [jid] = await batch_of(ledger, "a")
    worker = await connect()
    told = asyncio.Event()
    worker.session.on_lost(told.set)
    lock = await worker.lock_job(jid, "w1", RUN)
    await worker.jobs.start(await worker.jobs.read(jid), RUN, 1)
    assert lock
    assert await worker.locks.holds(lock)
    first = worker.session.id
    # The servers are told by another connection that this session is over, as they find after a long silence.
    await asyncio.to_thread(end_session, worker.session)
    async with asyncio.timeout(30):
        await told.wait()
    assert not await worker.locks.holds(lock)
    assert (await worker.jobs.read(jid)).state == "estimating"
    assert worker.session.id not in (0, first)
    # Another takes the job up where it was; the first one's late word is refused.
    await eventually(lambda: ledger.lock_job(jid, "w2", OTHER_RUN))
    await ledger.jobs.start(await ledger.jobs.read(jid), OTHER_RUN, 2)
    with pytest.raises(LockLost):
        await worker.jobs.advance(jid, RUN, b"{}")
    assert (await ledger.jobs.advance(jid, OTHER_RUN, b"{}")).retries == 0


async def test_whoever_is_cut_off_for_longer_than_the_timeout_gives_its_session_up(
    own_server: ZooKeeper, frail: Ledger
) -> None:
    _, [jid] = await batch_of(frail, "a")
    lock = await frail.lock_job(jid, "w1", RUN)
    own_server.signal(signal.SIGSTOP)
    try:
        async with asyncio.timeout(50):
            await frail.session.lost.wait()
    finally:
        own_server.signal(signal.SIGCONT)
    assert lock
    assert not await frail.locks.holds(lock)
    assert (await frail.jobs.read(jid)).state == "pending"


async def test_a_server_that_comes_back_soon_keeps_locks_and_finishes_what_was_asked(
    own_server: ZooKeeper,
) -> None:
    async with _opened(own_server, timeout=30) as ledger:
        bid, [jid] = await batch_of(ledger, "a", seal=False)
        lock = await ledger.lock_job(jid, "w1", RUN)
        adding = asyncio.ensure_future(ledger.intake.add(bid, [newcomer(f"k{n}") for n in range(300)]))
        await eventually(lambda: _more_than(ledger, bid, 60))
        await asyncio.to_thread(_restart, own_server)
        added = await adding
        assert len({each.jid for each in added}) == 300
        assert (await ledger.batches.read(bid)).expansion.rows == 301
        assert lock
        assert await ledger.locks.holds(lock)
        assert await check(ledger) == []


def _restart(server: ZooKeeper) -> None:
    server.kill()
    server.start()
    server.await_ready()


async def _more_than(ledger: Ledger, bid: str, count: int) -> bool:
    return await ledger.reader.unfinished(bid) > count


async def test_closing_twice_and_using_it_again_is_fine(connect: Opener) -> None:
    ledger = await connect()
    await ledger.close()
    await ledger.close()
    assert await everything(ledger)
