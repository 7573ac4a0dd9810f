"""What is lost and what is not: workers, sessions, the line, and late words; B4, B20, B21, B26."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from maitred.core.job import Phase, Start, Stop
from maitred.core.output import Part
from maitred.core.settings import SECOND, Settings
from maitred.core.stages import INGEST
from maitred.errors import AlreadyEnded, LockLost
from maitred.store.ledgered import LedgeredStores
from maitred.store.memory import MemoryStores
from maitred.store.port import Stores
from maitred.store.zookeeper.session import Create, Delete
from tests.conftest import Clock, Servers
from tests.conftest import connect as connect_line
from tests.waiting import eventually
from tests.zookeeper.house import NEEDS, House, finish

Opener = Callable[[], Awaitable[House]]


@pytest.fixture
async def lines(servers: Servers, line: str, clock: Clock) -> AsyncIterator[Stores]:
    lines = connect_line(servers, line, clock)
    yield lines
    await lines.close()


@pytest.fixture
async def houses(lines: Stores, settings: Settings, clock: Clock, queue_name: str) -> AsyncIterator[Opener]:
    """Open the same queue as other processes do: each with a session of its own."""
    opened: list[House] = []
    async with AsyncExitStack() as stack:

        async def another() -> House:
            stores = LedgeredStores(lines, clock)
            store = stores.queue(queue_name)
            await store.configure(settings)
            tree = await store.tree()
            assert tree
            opened.append(House(stores, store, tree, clock))
            stack.push_async_callback(store.close)
            return opened[-1]

        yield another
        await opened[-1].store.tell(100)
        assert await opened[-1].store.check() == []


async def begin(house: House, worker: str, needs: list[str] = NEEDS) -> Start:
    """Join, and give the one start."""
    [start] = (await house.store.join(worker, 1, needs)).starts
    return start


async def dies(house: House) -> None:
    """End a process without a word: its session ends, and its locks with it."""
    await house.ledger.session.close()


async def into(house: House, worker: str, start: Start, stage: str) -> Start:
    while start.need != f"stage:{stage}":
        [start] = (await house.store.finish(worker, [finish(start)])).starts
    return start


async def test_b4_the_session_of_a_batchs_lock_ends_and_its_state_stays(houses: Opener) -> None:
    one, other = await houses(), await houses()
    bid = await one.batch(sealed=True)
    errand = await one.store.lock_batch("clerk", b"t" * 16)
    assert errand
    assert await other.store.lock_batch("other", b"u" * 16) is None
    await dies(one)
    batch = await other.store.batch(bid)
    assert batch
    assert (batch.state, batch.owner) == ("reporting", "")
    again = await other.store.lock_batch("other", b"u" * 16)
    assert again
    assert again.batch.id == bid
    with pytest.raises(LockLost):
        await one.store.report_batch(bid, b"t" * 16, b"{}", send=False)


async def test_b20_a_dead_workers_job_goes_on_in_the_stage_where_it_was(houses: Opener, clock: Clock) -> None:
    one, other = await houses(), await houses()
    await one.put("a")
    lost = await into(one, "one", await begin(one, "one"), "downloading")
    await one.store.renew("one", [lost.lease])
    await dies(one)
    clock.at(31)
    again = await begin(other, "other")
    assert (again.need, again.attempt, again.data) == ("stage:downloading", 2, b'"stage:provisioning"')
    assert (await other.entry("a")).retries == 0
    late = await one.store.finish("one", [finish(lost)])
    assert late.lost == [lost.lease]
    assert await other.states("a") == ("downloading", "downloading")
    await into(other, "other", again, "notify")
    assert await other.states("a") == ("notify", "notify")


async def test_b21_a_cancelled_run_is_failed_its_lock_gone_and_its_late_word_refused(houses: Opener) -> None:
    one, other = await houses(), await houses()
    bid = await one.batch()
    await one.put("a", batch=bid)
    start = await begin(one, "w")
    await other.store.cancel("a", "cancelled by ada")
    assert await other.states("a") == ("failed", "failed")
    [stop] = await one.store.park("w", 1)
    assert isinstance(stop, Stop)
    assert (stop.lease, stop.code) == (start.lease, "cancelled")
    late = await one.store.finish("w", [finish(start)._replace(said=(Part("log", b"so far"),))])
    assert late.lost == [start.lease]
    output = await one.store.output("a", None, 0, 10)
    assert output
    assert ([chunk.data for chunk in output.chunks], output.ended) == ([b"so far"], True)
    entry = await other.entry("a")
    assert (entry.state, entry.standing.code) == ("failed", "cancelled")
    assert await one.ledger.session.stat(one.tree.bridge.lock(entry.jid)) is None
    with pytest.raises(AlreadyEnded):
        await other.store.cancel("a", "again")


async def test_a_run_is_taken_up_by_one_even_if_the_line_gives_it_to_two(houses: Opener) -> None:
    """A line that was wiped and rebuilt knows nothing of who runs; the lock does."""
    one, other = await houses(), await houses()
    await one.put("a")
    start = await begin(one, "one")
    job = await one.job("a")
    await other.line.leave("one")
    await other.line.hand_back("one", [start.lease])  # as if the line had forgotten the lease
    assert (await other.store.join("other", 1, NEEDS)).starts == []
    assert other.tree.runs.taken == {}
    refused = await one.store.finish("one", [finish(start)])
    assert refused.lost == [start.lease]
    assert (await one.entry("a")).state == "provisioning", "the stage was done, and once"
    assert (await one.job("a")).record == job.record
    [taken] = (await other.store.renew("other", [])).starts or (await other.store.take("other")).starts
    assert (taken.need, taken.data) == ("stage:provisioning", b'"stage:estimating"')


async def test_a_lost_session_stops_the_work_and_hands_it_back(houses: Opener) -> None:
    one, other = await houses(), await houses()
    await one.put("a")
    start = await begin(one, "one")
    one.ledger.session._lose()
    [stop] = await one.store.park("one", 1)
    assert isinstance(stop, Stop)
    assert (stop.lease, stop.code) == (start.lease, "session-lost")
    assert (await one.store.renew("one", [start.lease])).lost == [start.lease]
    await other.store.join("other", 1, NEEDS)
    await one.store.leave("one")
    shift = await one.store.finish("one", [finish(start, "session-lost", "it was stopped")])
    assert shift.lost == [start.lease]
    [again] = await other.store.park("other", 1)
    assert isinstance(again, Start)
    assert (again.need, again.attempt) == ("stage:estimating", 1)
    assert await other.states("a") == ("estimating", "estimating")


async def test_work_that_was_done_when_the_session_was_lost_ends_nothing(houses: Opener) -> None:
    one = await houses()
    await one.put("a")
    start = await begin(one, "one", NEEDS[:1])
    one.ledger.session._lose()
    shift = await one.store.finish("one", [finish(start)])
    assert shift.lost == [start.lease]
    [again] = shift.starts or await one.store.park("one", 1)
    assert again.need == "stage:estimating"  # type: ignore[union-attr]
    await one.store.finish("one", [finish(again)])  # type: ignore[arg-type]
    assert await one.states("a") == ("provisioning", "provisioning")


async def test_a_word_said_twice_ends_a_stage_once(houses: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer of the line is lost; the worker says it again."""
    one = await houses()
    await one.put("a")
    start = await begin(one, "w", NEEDS[:1])
    line_finish = one.line.finish
    calls = 0

    async def lossy(worker: str, results: object) -> object:
        nonlocal calls
        calls += 1
        answer = await line_finish(worker, results)  # type: ignore[arg-type]
        if calls == 1:
            raise ConnectionError
        return answer

    monkeypatch.setattr(one.line, "finish", lossy)
    with pytest.raises(ConnectionError):
        await one.store.finish("w", [finish(start)])
    await one.store.finish("w", [finish(start)])
    assert await one.states("a") == ("provisioning", "provisioning")
    assert (await one.entry("a")).last == "estimating"


async def test_a_crash_between_tree_and_line_leaves_a_job_that_reconcile_brings_in(
    houses: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = await houses(), await houses()

    async def dead(_orders: object) -> list[object]:
        raise ConnectionError

    with monkeypatch.context() as patched:
        patched.setattr(one.line, "put", dead)
        with pytest.raises(ConnectionError):
            await one.put("a")
    assert await other.store.read(["a"]) == [None]
    tally = await other.store.reconcile()
    assert tally
    assert len(tally.made) == 1
    assert (await other.job("a")).phase is Phase.WAITING
    assert len(await other.work()) == 6
    assert await other.states("a") == ("completed", "completed")


async def test_a_put_that_is_sent_again_after_a_crash_is_one_job(
    houses: Opener, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = await houses(), await houses()

    async def dead(_orders: object) -> list[object]:
        raise ConnectionError

    with monkeypatch.context() as patched:
        patched.setattr(one.line, "put", dead)
        with pytest.raises(ConnectionError):
            await one.put("a")
    await other.put("a")
    clock.at(40)
    await other.store.reconcile()
    assert await other.work() == [f"a@{stage}" for stage in INGEST]
    states = [entry.state async for entry in other.ledger.unended()]
    assert states == []


async def test_a_job_that_another_program_moved_is_noticed(houses: Opener) -> None:
    one = await houses()
    bid = await one.batch()
    await one.put("a", "b", batch=bid)
    looks = one.store.follow()
    await anext(looks)
    follow = asyncio.ensure_future(anext(looks))
    await one.ledger.jobs.fail((await one.job("a")).ledger, None, "", "moved by hand")
    await asyncio.wait_for(follow, 10)
    job = await one.job("a")
    assert (job.state(INGEST), job.message) == ("failed", "moved by hand")
    assert await one.state("b") == "pending"


async def test_a_run_that_another_program_ended_is_stopped(houses: Opener) -> None:
    one = await houses()
    await one.put("a")
    start = await begin(one, "w", NEEDS[:1])
    await one.ledger.jobs.fail((await one.job("a")).ledger, None, "other", "ended by hand")
    late = await one.store.finish("w", [finish(start)])
    assert late.lost == [start.lease]
    job = await one.job("a")
    assert (job.state(INGEST), job.code, job.message) == ("failed", "other", "ended by hand")


async def test_a_job_that_another_program_made_is_run(houses: Opener) -> None:
    one = await houses()
    tree, session = one.ledger.tree, one.ledger.session
    jid = "jid0000000000"
    await session.multi([Create(tree.job(jid))])
    facts = {
        "bid": b"",
        "configuration": b'{"profile_name":"p","submitter":"ada","payload_url":"http://x/1"}',
        "status": b'{"status":"Pending","last_successful_status":null,"retry_count":0}',
        "priority": b"2",
        "space_needed": b"0",
    }
    ops = [Create(tree.job(jid, fact), data) for fact, data in facts.items()]
    await session.multi([*ops, Create(tree.entry("pending", 2, jid))])
    await one.store.reconcile()
    [view] = (await one.store.line(None, 10)).views
    assert (view.job.ledger, view.job.priority, view.job.profile) == (jid, 2, "p")
    assert b'"payload_url":"http://x/1"' in view.job.body
    assert len(await one.work()) == 6
    assert (await one.ledger.jobs.read(jid)).state == "completed"


async def test_b26_a_wiped_line_is_rebuilt_and_every_job_ends_once(
    houses: Opener, lines: Stores, settings: Settings
) -> None:
    one = await houses()
    bid = await one.batch()
    keys = [f"k{n}" for n in range(12)]
    await one.put(*keys, batch=bid)
    await one.put("held", batch=bid)
    await one.store.seal_batch(bid)
    await one.store.hold("job", "held", "ada", "later")
    await one.store.hold("profile", "none", "ada", "")
    await one.store.cancel("k11", "not this one")
    starts = (await one.store.join("old", 4, NEEDS)).starts
    ends = await one.store.finish("old", [finish(start) for start in starts[:2]])
    await wipe(one, lines, settings)
    before = await one.line.status()
    assert before.jobs == 0
    two = await houses()
    await two.store.reconcile()
    assert [held.kind for held in (await two.store.status()).holds] == ["profile"]
    gone = await one.store.renew("old", [start.lease for start in (*starts[2:], *ends.starts)])
    assert not gone.known
    late = await one.store.finish("old", [finish(start) for start in starts[2:]])
    assert len(late.lost) == 2

    async def free() -> bool:
        return not one.tree.runs.taken and not one.tree.runs.locked

    await eventually(free)
    await two.store.unhold("job", "held")
    done = await two.work("new")
    assert len(done) == len(set(done)), "no stage was done twice"
    states = {key: await two.states(key) for key in [*keys[:-1], "held"]}
    assert set(states.values()) == {("completed", "completed")}
    batch = await two.store.batch(bid)
    assert batch
    assert (batch.counts["completed"], batch.counts["failed"], batch.state) == (12, 1, "reporting")


async def wipe(house: House, lines: Stores, settings: Settings) -> None:
    """Lose all that the line has, and make it anew."""
    if isinstance(lines, MemoryStores):
        house.line._state = None  # type: ignore[attr-defined]
    else:
        calls = lines._calls  # type: ignore[attr-defined]
        keys = await calls.command("", "KEYS", f"*{house.store.queue}*")
        await calls.change("", "DEL", *keys)
    await house.line.configure(replace(settings, max_body=512 * 1024))


async def test_a_lock_of_somebody_else_is_waited_for(houses: Opener) -> None:
    one = await houses()
    await one.put("a")
    lock = one.tree.bridge.lock((await one.job("a")).ledger)
    await one.ledger.session.multi([Create(lock)])
    assert (await one.store.join("w", 1, NEEDS)).starts == []
    assert (await one.store.renew("w", [])).starts == []
    await one.ledger.session.multi([Delete(lock)])
    [start] = (await one.store.renew("w", [])).starts
    assert (await one.job("a")).attempt == start.attempt == 1


async def test_spent_attempts_are_told_to_the_tree(houses: Opener, clock: Clock) -> None:
    one = await houses()
    await one.put("a")
    for n in range(3):
        start = await begin(one, f"w{n}", NEEDS[:1])
        await one.store.renew(f"w{n}", [start.lease])
        one.tree.runs.taken.clear()
        await one.ledger.locks.drop(one.tree.bridge.lock(start.ledger))
        one.tree.runs.locked.clear()
        clock.now += 31 * SECOND
    await one.store.tick()
    assert await one.states("a") == ("failed", "estimating")
    await one.store.tell(10)
    assert await one.states("a") == ("failed", "failed")
    assert (await one.entry("a")).standing.code == "attempts"
