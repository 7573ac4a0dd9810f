"""The Line's scenarios by number, on the reference and on real servers."""

import asyncio
from dataclasses import replace

import pytest

from maitred.core.invariants import violations
from maitred.core.job import Band, Finish, Order, Start, Submitter
from maitred.core.reason import delay_reason
from maitred.core.settings import MINUTE, SECOND, Settings
from maitred.errors import NotMovable, UnknownJob, UnknownQueue
from maitred.store.port import Store, Stores
from tests.conformance.party import NEED, T7, U1, U2, U7, Party


async def test_l1_an_empty_queue_has_nothing_to_take(party: Party) -> None:
    assert await party.pops() == []


async def test_l2_of_one_submitter_the_newest_goes_first(party: Party) -> None:
    await party.submit("A")
    await party.submit("B")
    assert await party.pops() == ["B", "A"]


async def test_l3_the_newest_takes_the_first_place_and_the_older_one_the_later(party: Party) -> None:
    await party.submit("A")
    party.clock.at(1)
    await party.submit("B", delay=60)
    assert await party.pops() == ["B"]
    assert await party.due_in("A") == 61
    party.clock.at(60.999999)
    assert await party.pops() == []
    party.clock.at(61)
    assert await party.pops() == ["A"]


async def test_l4_places_of_one_submitter_come_before_a_later_stranger(party: Party) -> None:
    for id in ("a", "b", "c"):
        await party.submit(id)
    await party.submit("other", U2)
    assert await party.pops() == ["c", "b", "a", "other"]


async def test_l5_a_place_can_be_taken_from_its_release_on_inclusive(party: Party) -> None:
    await party.submit("A", delay=60)
    party.clock.at(59)
    assert await party.pops() == []
    party.clock.at(60)
    assert await party.pops() == ["A"]


async def test_l6_a_put_of_a_waiting_key_replaces_its_body_and_nothing_else(party: Party) -> None:
    await party.submit("A", body=b"old")
    await party.submit("B", U2)
    assert await party.submit("A", body=b"new") == "updated"
    assert await party.line() == ["A", "B"]
    assert len((await party.store.submitter(U1)).places) == 1
    start = await party.pop()
    assert start
    assert (start.id, start.body) == ("A", b"new")


async def test_l7_a_put_of_a_waiting_key_does_not_change_its_due_time(party: Party) -> None:
    await party.submit("A", delay=60)
    party.clock.at(5)
    await party.submit("A", delay=0)
    assert await party.due_in("A") == 60


async def test_l8_an_immediate_put_lifts_a_scheduled_job(party: Party) -> None:
    await party.submit("A", delay=600)
    await party.submit("B", U2)
    assert await party.now_at("A", body=b"new") == "upgraded"
    view = await party.store.submitter(U1)
    assert (view.jobs, view.places) == (["A"], [])
    start = await party.pop()
    assert start
    assert (start.id, start.body) == ("A", b"new")
    assert await party.pops() == ["B"]


async def test_l9_an_immediate_job_goes_before_due_ones(party: Party) -> None:
    await party.submit("A")
    await party.submit("B", U2)
    await party.now_at("X", U7)
    assert (await party.pops())[0] == "X"


async def test_l10_immediate_jobs_go_first_in_first_out(party: Party) -> None:
    await party.now_at("X")
    await party.now_at("Y")
    assert await party.pops() == ["X", "Y"]


async def test_l11_an_immediate_job_stands_outside_its_submitters_stack(party: Party) -> None:
    await party.now_at("X")
    await party.submit("Z")
    assert await party.pops() == ["X", "Z"]


async def five(party: Party) -> None:
    for number in range(1, 6):
        await party.submit(f"j{number}", Submitter("user", f"u{number}"))


async def test_l12_a_released_job_goes_first_and_the_rest_stays(party: Party) -> None:
    await five(party)
    await party.store.release("j3")
    assert await party.pops() == ["j3", "j1", "j2", "j4", "j5"]


async def test_l13_the_last_one_released_goes_first(party: Party) -> None:
    await five(party)
    await party.store.release("j1")
    await party.store.release("j2")
    assert await party.line() == ["j2", "j1", "j3", "j4", "j5"]


async def test_l14_delayed_jobs_go_last_in_the_order_of_their_delay(party: Party) -> None:
    await five(party)
    await party.store.delay("j1")
    await party.store.delay("j2")
    assert await party.line() == ["j3", "j4", "j5", "j1", "j2"]
    assert await party.due_in("j2") - await party.due_in("j1") >= 10
    assert await party.due_in("j1") >= 10


async def test_l14_delay_sends_a_job_to_the_bottom_of_its_stack_with_its_nonce(party: Party) -> None:
    await party.submit("A")
    await party.submit("B")
    [before] = await party.store.read(["B"])
    await party.store.delay("B")
    [after] = await party.store.read(["B"])
    assert before
    assert after
    assert before.nonce == after.nonce
    party.clock.at(60)
    assert await party.pops() == ["A", "B"]


@pytest.mark.parametrize("move", ["release", "delay"])
async def test_l15_an_immediate_job_cannot_be_moved(party: Party, move: str) -> None:
    await party.now_at("X")
    before = await party.store.snapshot()
    with pytest.raises(NotMovable):
        await getattr(party.store, move)("X")
    assert await party.store.snapshot() == before


async def test_l16_deleting_takes_one_place_and_one_nonce_each(party: Party) -> None:
    await party.submit("A")
    await party.submit("B")
    await party.store.remove("B")
    view = await party.store.submitter(U1)
    assert (view.jobs, len(view.places)) == (["A"], 1)
    await party.store.remove("A")
    left = await party.store.snapshot()
    assert (left.places, left.stacks, left.nonces, left.own, left.jobs) == ([], {}, {}, {}, {})


async def test_l17_an_unknown_id_is_unknown_to_every_verb(party: Party) -> None:
    for verb in (
        party.store.release("?"),
        party.store.delay("?"),
        party.store.remove("?"),
        party.store.cancel("?", ""),
    ):
        with pytest.raises(UnknownJob):
            await verb
    assert await party.store.read(["?"]) == [None]


async def test_l18_a_job_handed_back_is_next_with_no_attempt_spent(party: Party) -> None:
    await party.submit("A")
    await party.submit("B", U2)
    shift = await party.store.join("w", 1, [NEED])
    [created] = await party.store.read(["A"])
    party.clock.at(5)
    await party.store.leave("w")
    await party.store.hand_back("w", [shift.starts[0].lease])
    [view] = await party.store.read(["A"])
    assert view
    assert created
    assert (view.position, view.job.band, view.job.attempt) == (1, Band.FRONT, 0)
    assert view.job.created_at == created.job.created_at
    assert [run.code for run in view.job.timeline] == ["handed-back"]
    assert await party.pops() == ["A", "B"]


async def test_l18_several_handed_back_keep_the_order_in_which_they_had_started(party: Party) -> None:
    await five(party)
    shift = await party.store.join("w", 3, [NEED])
    await party.store.leave("w")
    await party.store.hand_back("w", [start.lease for start in reversed(shift.starts)])
    assert await party.pops() == ["j1", "j2", "j3", "j4", "j5"]


async def test_l19_a_killed_workers_job_comes_back_to_the_front_until_its_attempts_are_spent(
    party: Party,
) -> None:
    await party.store.configure(Settings())
    await party.submit("B", U2, delay=0)
    await party.submit("A", delay=0)
    for attempt in (1, 2, 3):
        shift = await party.store.join(f"dead{attempt}", 1, [NEED])
        [start] = shift.starts
        assert (start.id, start.attempt) == ("B", attempt)
        await party.store.renew(f"dead{attempt}", [start.lease])
        party.clock.now += 15 * SECOND - 1
        await party.store.tick()
        [view] = await party.store.read(["B"])
        assert view
        assert view.job.phase == "running"
        party.clock.now += 1
        await party.store.tick()
    assert await party.state("B") == ("failed", "attempts")
    [view] = await party.store.read(["B"])
    assert view
    assert [run.code for run in view.job.timeline] == ["lost", "lost", "lost"]
    assert await party.line() == ["A"]
    assert (await party.store.status()).workers == []


async def test_l20_eight_takers_get_each_of_500_jobs_exactly_once(store: Store) -> None:
    for first in range(0, 500, 100):
        await store.put(
            [Order(f"j{n}", Submitter("user", str(n % 7)), NEED, b"") for n in range(first, first + 100)]
        )

    async def taker(name: str) -> list[str]:
        starts: list[Start] = (await store.join(name, 3, [NEED])).starts
        done: list[str] = []
        while starts:
            done += [start.id for start in starts]
            starts = (await store.finish(name, [Finish(start.lease) for start in starts])).starts
        return done

    lists = await asyncio.gather(*(taker(f"t{n}") for n in range(8)))
    assert sorted(id for ids in lists for id in ids) == sorted(f"j{n}" for n in range(500))
    assert violations(await store.snapshot()) == []


async def test_l22_team_7_and_user_7_are_strangers(party: Party) -> None:
    await party.submit("A", U7)
    await party.submit("B", T7)
    assert await party.pops() == ["A", "B"]


async def test_l23_the_nth_in_line_has_position_n_everywhere(party: Party) -> None:
    for number in range(12):
        await party.submit(f"j{number}", Submitter("user", str(number % 3)))
    await party.now_at("x")
    await party.store.release("j4")
    line = await party.line()
    assert line[:2] == ["j4", "x"]
    views = await party.store.read(line)
    assert [view.position for view in views if view] == list(range(1, 14))
    pages, cursor = [], None
    while True:
        page = await party.store.line(cursor, 5)
        pages += [(view.job.id, view.position) for view in page.views]
        cursor = page.next
        if cursor is None:
            break
    assert pages == [(id, place) for place, id in enumerate(line, 1)]
    assert await party.pops() == line


async def test_l24_the_delay_policy_counts_a_submitters_recent_submissions(party: Party) -> None:
    rules = Settings(per_recent=60 * SECOND, window=15 * MINUTE)
    await party.store.configure(rules)
    for id in ("a", "b", "c"):
        await party.submit(id, delay=None)
    places = (await party.store.submitter(U1)).places
    assert [(release - party.clock.now) // SECOND for _, release in places] == [0, 60, 120]
    views = await party.store.read(["a", "b", "c"])
    reasons = [delay_reason(view.job.recent, rules.per_recent, rules.window) for view in views if view]
    counts = ["0 submissions", "1 submission", "2 submissions"]
    assert reasons == [f"{count} in the last 15 min × 60 s" for count in counts]
    assert (await party.store.submitter(U1)).recent == 3
    await party.submit("other", U2, delay=None)
    assert await party.due_in("other") == 0
    party.clock.at(15 * 60)
    assert (await party.store.submitter(U1)).recent == 0


async def test_l25_a_live_submission_goes_before_a_bulk_batch(party: Party) -> None:
    await party.store.put([Order(f"r{n}", U2, NEED, b"", band=Band.BULK) for n in range(200)])
    await party.submit("live")
    assert (await party.pops(1)) == ["live"]


async def test_settings_are_shown_as_they_were_last_written(party: Party) -> None:
    assert await party.store.settings() == (await party.store.status()).settings
    changed = replace(await party.store.settings(), grace=7 * SECOND, profiles=("a", "b"))
    await party.store.configure(changed)
    assert await party.store.settings() == changed


async def test_the_settings_of_a_queue_that_nobody_configured_are_unknown(stores: Stores) -> None:
    with pytest.raises(UnknownQueue, match="nowhere"):
        await stores.queue("nowhere").settings()
