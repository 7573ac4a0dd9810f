"""The rest of the Line's rules, and what workers may rely on, on the reference and on real servers."""

from dataclasses import replace

import pytest

from maitred.core.invariants import violations
from maitred.core.job import Band, Finish, Lease, Order, Put, Start, Stop
from maitred.core.reason import Reason, waiting_for
from maitred.core.settings import SECOND, Settings
from maitred.errors import OtherNonce, SettingsForbidden
from maitred.store.port import Store
from tests.conformance.party import NEED, U1, U2, U7, Party


async def test_a_move_with_another_nonce_is_refused(party: Party) -> None:
    await party.submit("A")
    [view] = await party.store.read(["A"])
    assert view
    assert view.nonce
    with pytest.raises(OtherNonce):
        await party.store.release("A", view.nonce + 1)
    await party.store.release("A", view.nonce)


async def test_a_lease_that_was_never_confirmed_returns_without_an_attempt_but_not_for_ever(
    party: Party,
) -> None:
    await party.store.configure(Settings())
    await party.submit("A")
    seen = []
    for number in range(8):
        shift = await party.store.join(f"deaf{number}", 1, [NEED])
        seen += [start.attempt for start in shift.starts]
        party.clock.now += 15 * SECOND
        await party.store.tick()
    assert seen == [1, 1, 1, 1, 2, 2, 2, 2]


async def test_a_put_of_a_running_key_queues_the_next_version(party: Party) -> None:
    await party.submit("A", body=b"one")
    first = await party.pop()
    assert first
    party.clock.at(3)
    assert await party.submit("A", body=b"two") == "next-version"
    assert await party.submit("A", body=b"three") == "updated"
    [view] = await party.store.read(["A"])
    assert view
    assert (view.job.version, view.running_versions, view.job.created_at) == (2, (1,), 1_000_000_000)
    second = await party.pop()
    assert second
    assert second.body == b"three"
    await party.finish(second, "w1")
    [old] = await party.store.read(["A"], 1)
    assert old
    assert old.job.phase == "running"
    assert await party.state("A") == ("completed", "")


async def test_a_key_stays_its_submitters_while_an_older_version_runs(party: Party) -> None:
    await party.submit("A")
    await party.pop()
    await party.submit("A")
    second = await party.pop()
    assert second
    await party.finish(second, "w1")
    assert await party.submit("A", U2) == "other-submitter"
    party.clock.at(9)
    assert await party.submit("A") == "next-version"
    views = await party.store.read(["A"])
    assert views[0]
    assert (views[0].job.created_at, views[0].running_versions) == (1_000_000_000, (1,))
    [old] = await party.store.read(["A"], 2)
    assert old
    assert old.running_versions == (1,)


async def test_thousands_run_end_and_are_swept_on_one_queue(store: Store) -> None:
    await store.configure(Settings(retention=1, max_per_submitter=10_000))
    for first in range(0, 3_000, 500):
        await store.put([Order(f"j{n}", U1, NEED, b"") for n in range(first, first + 500)])
    for name in ("a", "b", "c"):
        await store.join(name, 1_024, [NEED])
        for _ in range(4):
            await store.take(name)
    running = await store.running()
    assert len(running) == 3_000
    assert len((await store.renew("a", [])).starts) == 1_024
    lost = await store.hand_back("b", [start.lease for start in (await store.renew("b", [])).starts])
    assert lost.lost == []
    for view in running[:300]:
        await store.cancel(view.job.id, "")
    assert violations(await store.snapshot()) == []


async def test_an_older_version_that_would_wait_again_is_superseded(party: Party) -> None:
    await party.submit("A")
    shift = await party.store.join("w", 1, [NEED])
    await party.submit("A")
    await party.store.leave("w")
    await party.store.hand_back("w", [shift.starts[0].lease])
    [old] = await party.store.read(["A"], 1)
    assert old
    assert (old.job.phase, old.job.code) == ("ended", "superseded")
    assert await party.line() == ["A"]


async def test_a_put_of_an_ended_key_starts_afresh(party: Party) -> None:
    await party.submit("A")
    start = await party.pop()
    assert start
    await party.finish(start, "w0")
    party.clock.at(9)
    assert await party.submit("A") == "created"
    [view] = await party.store.read(["A"])
    assert view
    assert (view.job.created_at, view.job.attempt, view.job.phase) == (party.clock.now, 0, "waiting")


async def test_another_submitters_unended_key_is_refused(party: Party) -> None:
    await party.submit("A")
    before = await party.store.snapshot()
    assert await party.submit("A", U2) == "other-submitter"
    assert await party.store.snapshot() == before


async def test_a_new_priority_moves_a_job_to_a_place_of_its_own(party: Party) -> None:
    await party.submit("A", delay=5)
    await party.submit("B", delay=7)
    assert await party.submit("A", priority=2) == "updated"
    view = await party.store.submitter(U1)
    assert len(view.places) == 1
    [a] = await party.store.read(["A"])
    assert a
    assert (a.nonce, a.release) == (None, party.clock.now + 7 * SECOND)
    assert await party.due_in("B") == 5


async def test_a_put_without_bulk_lifts_a_bulk_job_and_one_with_it_never_lowers(party: Party) -> None:
    await party.submit("A", band=Band.BULK)
    await party.submit("B", U2)
    assert await party.submit("A") == "upgraded"
    assert await party.submit("B", U2, band=Band.BULK) == "updated"
    assert await party.line() == ["B", "A"]


async def test_priority_goes_before_release_and_release_before_arrival(party: Party) -> None:
    await party.submit("late", U1, delay=2)
    await party.submit("soon", U2, delay=1)
    await party.submit("first", U7, delay=2, priority=1)
    assert await party.line() == ["soon", "late", "first"]
    party.clock.at(2)
    assert await party.line() == ["first", "soon", "late"]


async def test_an_eager_queue_lets_an_idle_floor_take_early(party: Party) -> None:
    await party.store.configure(Settings(eager=True))
    await party.submit("A", delay=60)
    await party.submit("B", U2, delay=30)
    assert await party.pops() == ["B", "A"]


async def test_oldest_first_serves_a_submitters_oldest_job(party: Party) -> None:
    await party.store.configure(Settings(order="oldest-first"))
    for id in ("A", "B", "C"):
        await party.submit(id)
    await party.store.delay("A")
    party.clock.at(60)
    assert await party.pops() == ["B", "C", "A"]


async def test_a_full_queue_refuses_and_changes_nothing(party: Party) -> None:
    await party.store.configure(Settings(max_total=3, max_per_submitter=2))
    assert [await party.submit(id) for id in "abc"] == ["created", "created", "full-per_submitter"]
    assert await party.submit("d", U2) == "created"
    before = await party.store.snapshot()
    assert await party.submit("e", U7) == "full-total"
    assert await party.submit("a", body=b"new") == "updated"
    await party.submit("a", body=b"")
    assert await party.store.snapshot() == before


async def test_the_limit_of_a_submitter_holds_within_one_call(party: Party) -> None:
    await party.store.configure(Settings(max_per_submitter=2))
    orders = [Order(id, U1, NEED, b"") for id in "abc"]
    orders += [Order("d", U2, NEED, b""), Order("e", U2, NEED, b"", band=Band.IMMEDIATE)]
    answers = await party.store.put([*orders, Order("f", U2, NEED, b"")])
    assert [put.outcome if isinstance(put, Put) else put for put in answers] == [
        *("created", "created", "full-per_submitter"),
        *("created", "created", "full-per_submitter"),
    ]


async def test_a_handler_that_nobody_ever_announced_is_refused_once_a_worker_has_been_there(
    party: Party,
) -> None:
    assert await party.submit("A", need="handler:x") == "created"
    await party.store.join("w", 1, [NEED])
    assert await party.submit("B", need="handler:x") == "unknown-handler"
    assert await party.submit("C", need="command") == "created"
    [a] = await party.store.read(["A"])
    reason = waiting_for(a, Settings()) if a else None
    assert reason
    assert reason.code == "no-worker"


async def test_a_paused_queue_accepts_and_starts_nothing(party: Party) -> None:
    await party.store.pause("ann", "maintenance")
    await party.submit("A")
    shift = await party.store.join("w", 1, [NEED])
    assert shift.starts == []
    status = await party.store.status()
    assert status.paused
    assert (status.paused.by, status.paused.reason) == ("ann", "maintenance")
    await party.store.resume()
    [message] = await party.store.park("w", 1)
    assert isinstance(message, Start)
    assert message.id == "A"


@pytest.mark.parametrize(
    ("by", "reason", "text"),
    [
        ("ann", "maintenance", "the queue is paused by ann: maintenance"),
        ("ann", "", "the queue is paused by ann"),
        ("é", '"\\\n', 'the queue is paused by é: "\\\n'),
    ],
)
async def test_a_job_in_a_paused_queue_says_who_paused_it_and_why(
    party: Party, by: str, reason: str, text: str
) -> None:
    await party.submit("A")
    await party.store.pause(by, reason)
    [read] = await party.store.read(["A"])
    [standing] = (await party.store.line(None, 1)).views
    assert read
    assert waiting_for(read, Settings()) == waiting_for(standing, Settings()) == Reason("paused", text)
    await party.store.resume()
    [read] = await party.store.read(["A"])
    assert read
    assert read.paused is None


async def test_cancelling_a_running_job_stops_it_and_refuses_its_late_result(party: Party) -> None:
    await party.submit("A")
    [start] = (await party.store.join("w", 1, [NEED])).starts
    await party.store.cancel("A", "cancelled by ann: wrong file")
    [stop] = await party.store.park("w", 1)
    assert isinstance(stop, Stop)
    assert stop.lease == start.lease
    assert stop.code == "cancelled"
    assert (await party.store.status()).free == 0
    shift = await party.store.finish("w", [Finish(start.lease, result=b"1")])
    assert shift.lost == [start.lease]
    assert await party.state("A") == ("failed", "cancelled")
    assert (await party.store.status()).free == 1


async def test_deleting_a_running_job_keeps_its_slot_until_the_stop_is_confirmed(party: Party) -> None:
    await party.submit("A")
    [start] = (await party.store.join("w", 1, [NEED])).starts
    await party.store.remove("A")
    assert await party.store.read(["A"]) == [None]
    assert await party.submit("A") == "created"
    assert await party.line() == ["A"]
    shift = await party.store.finish("w", [Finish(start.lease)])
    assert (shift.lost, [s.id for s in shift.starts]) == ([start.lease], ["A"])


async def test_a_waiting_job_expires_and_a_running_one_does_not(party: Party) -> None:
    at = party.clock.now + 10 * SECOND
    await party.submit("A", expires_at=at)
    await party.pop()
    await party.submit("B", U2, expires_at=at)
    party.clock.at(10)
    await party.store.tick()
    assert await party.state("B") == ("failed", "expired")
    assert (await party.state("A"))[0] == "processing"


async def test_ended_jobs_are_swept_after_the_retention_with_everything_of_theirs(party: Party) -> None:
    rules = Settings(retention=100 * SECOND)
    await party.store.configure(rules)
    for number in range(5):
        await party.submit(f"j{number}")
        await party.store.cancel(f"j{number}", "")
    await party.submit("stays")
    party.clock.at(100)
    assert await party.store.sweep(3) == 3
    await party.store.tick()
    left = await party.store.snapshot()
    assert [job.id for job in left.jobs.values()] == ["stays"]
    assert (left.ended, list(left.newest)) == ([], ["stays"])


async def test_renewing_tells_what_was_missed_and_what_was_lost(party: Party) -> None:
    await party.submit("A")
    await party.submit("B", U2)
    [a, b] = (await party.store.join("w", 2, [NEED])).starts
    forged = Lease(b.lease.record, b"x" * 16)
    shift = await party.store.renew("w", [a.lease, forged])
    assert [start.id for start in shift.starts] == ["B"]
    assert shift.starts[0] == b
    assert shift.lost == [forged]


async def test_a_worker_that_was_given_up_is_told_so(party: Party) -> None:
    await party.store.configure(Settings())
    await party.submit("A")
    [start] = (await party.store.join("w", 1, [NEED])).starts
    party.clock.at(15)
    shift = await party.store.renew("w", [start.lease])
    assert (shift.known, shift.lost) == (False, [start.lease])
    shift = await party.store.finish("w", [Finish(start.lease)])
    assert (shift.known, shift.lost) == (False, [start.lease])
    assert (await party.state("A"))[0] == "processing"
    assert await party.line() == ["A"]


async def test_the_clock_never_goes_back(party: Party) -> None:
    party.clock.at(100)
    await party.submit("A", delay=10)
    party.clock.at(50)
    await party.submit("B", U2, delay=10)
    assert await party.due_in("B") == 110


async def test_settings_that_the_waiting_jobs_forbid_are_refused(party: Party) -> None:
    await party.submit("A")
    with pytest.raises(SettingsForbidden):
        await party.store.configure(replace(Settings(), order="oldest-first"))
    await party.store.configure(replace(Settings(), attempts=7))
