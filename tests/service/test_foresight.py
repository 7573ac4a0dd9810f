"""What a server foresees: promises that hold, and what is expected, as callers of the desk are told it."""

import contextlib
import random
from dataclasses import replace

import pytest

from maitred.core.classes import DurationClass, Limit
from maitred.core.job import Order, Submitter
from maitred.core.occupancy import Running
from maitred.core.settings import SECOND, Settings
from maitred.errors import NotMovable
from maitred.service.foresight import NEAR
from maitred.service.lanes import standing
from maitred.service.picture import STOP_MARGIN, TIMER_SLACK
from maitred.store.port import Stores
from tests.conftest import Clock
from tests.http.floor import THREE
from tests.service.lookout import Lookout, Quote, looking_out, quote_of
from tests.waiting import eventually

CLASSES = ("fast", "medium", "slow", None)
ONE_SLOT = replace(
    THREE,
    classes=(
        DurationClass("fast", 3 * SECOND),
        DurationClass("medium", 10 * SECOND, Limit(1)),
        DurationClass("slow", 30 * SECOND, Limit(1)),
    ),
)
# From the end of a time limit to the unit that is free again, in the worst case.
STOP = (THREE.kill_after + STOP_MARGIN) / SECOND
SLACK = TIMER_SLACK / SECOND


def asked(name: str | None) -> dict[str, str]:
    return {"class": name} if name else {}


async def full_floor(lookout: Lookout, settings: Settings = THREE, slots: int = 4) -> None:
    """Open a floor on which jobs with the fastest class run on every slot."""
    await lookout.store.configure(settings)
    await lookout.works(slots)
    for number in range(slots):
        await lookout.submit(f"runs{number}", **asked("fast"))
    await lookout.starts()
    await lookout.heard()


# ---------------------------------------------------------------- the promise


async def test_f15_whoever_joins_behind_changes_no_earlier_estimate(lookout: Lookout) -> None:
    await full_floor(lookout)
    first = [await lookout.submit(f"a{n}", **asked(CLASSES[n % 4])) for n in range(12)]
    await lookout.heard()
    before = await lookout.quotes(first)
    assert all(quote.at_latest and quote.expected for quote in before)
    for number in range(30):
        await lookout.submit(f"b{number}", **asked(CLASSES[number % 3]))
        assert await lookout.quotes(first) == before
    await lookout.heard()
    assert await lookout.quotes(first) == before


async def test_f15_holds_for_a_server_that_looks_only_afterwards(
    lookout: Lookout, elsewhere: Stores, clock: Clock
) -> None:
    await full_floor(lookout)
    ids = [await lookout.submit(f"a{n}", **asked(CLASSES[n % 4])) for n in range(8)]
    await lookout.heard()
    before = await lookout.quotes(ids)
    for number in range(8):
        await lookout.submit(f"b{number}", **asked(CLASSES[number % 4]))
    async with looking_out(elsewhere, lookout.queue, clock) as other:
        assert await other.quotes(ids) == before


@pytest.mark.parametrize(("policy", "seed"), [("borrow", 0), ("squeeze", 1)])
async def test_f16_a_promise_never_moves_later_and_is_never_broken(
    lookout: Lookout, clock: Clock, policy: str, seed: int
) -> None:
    dice = random.Random(seed)
    await full_floor(lookout, replace(THREE, elastic=policy))  # type: ignore[arg-type]
    promised: dict[str, float] = {}
    lengths: dict[str, float] = {}
    started = 0
    for step in range(100):
        if step < 25:
            await lookout.submit(f"j{step}", **asked(dice.choice(CLASSES)))
        clock.now += dice.choice([0, SECOND // 10, SECOND // 4])
        await lookout.starts()
        await _end_those_who_took_enough(lookout, lengths, dice)
        await lookout.heard()
        now = (clock.now - 1_000 * SECOND) / SECOND
        line = await lookout.desk.line(lookout.queue, limit=100)
        quotes = {document["id"]: quote_of(document) for document in line["items"]}
        for id in promised.keys() - quotes.keys():
            assert now <= promised.pop(id), "it started after what was promised"
            started += 1
        for id, quote in quotes.items():
            assert quote
            assert quote.at_latest is not None
            assert quote.at_latest <= promised.get(id, quote.at_latest), "a promise moved later"
            assert quote.low is not None
            assert quote.expected is not None
            assert quote.high is not None
            assert quote.low <= quote.expected <= quote.high <= quote.at_latest
            promised[id] = quote.at_latest
    assert started > 8


async def _end_those_who_took_enough(
    lookout: Lookout, lengths: dict[str, float], dice: random.Random
) -> None:
    """End each run at a length of its own, at most at its time limit."""
    for id, start in list(lookout.held.items()):
        length = lengths.setdefault(id, dice.uniform(0, 1.2 * start.duration))
        if lookout.clock.now - start.start >= min(length, start.duration):
            await lookout.ends(id)
    await lookout.starts()


async def test_f17_a_fast_job_is_promised_the_slot_of_an_elastic_after_the_fastest_cap(
    lookout: Lookout, clock: Clock
) -> None:
    await lookout.store.configure(ONE_SLOT)
    await lookout.works(1)
    await lookout.submit("elastic")
    clock.at(1)
    fast = await lookout.submit("fast", **asked("fast"))
    await lookout.heard()
    [quote] = await lookout.quotes([fast])
    assert quote.at_latest == pytest.approx(3 + SLACK + STOP)


async def test_f18_a_cancel_in_line_moves_those_behind_up_and_nobody_before(
    lookout: Lookout, clock: Clock
) -> None:
    await full_floor(lookout)
    ids = [await lookout.submit(f"a{n}", **asked(CLASSES[n % 4])) for n in range(16)]
    await lookout.heard()
    clock.now += SECOND // 2
    before = await lookout.quotes(ids)
    await lookout.desk.cancel(lookout.queue, ids[5], by="u")
    await lookout.heard()
    clock.now += SECOND // 2
    after = await lookout.quotes(ids[:5] + ids[6:])
    assert [quote.at_latest for quote in after[:5]] == [quote.at_latest for quote in before[:5]]
    behind = [(_late(was), _late(now)) for was, now in zip(before[6:], after[5:], strict=True)]
    assert all(now <= was for was, now in behind)
    assert any(now < was for was, now in behind)


def _late(quote: Quote) -> float:
    assert quote.at_latest is not None
    return quote.at_latest


# ---------------------------------------------------------------- where nothing can be promised


async def test_a_place_that_is_not_due_is_promised_nothing_and_expected_after_its_release(
    lookout: Lookout,
) -> None:
    await full_floor(lookout)
    [quote] = await lookout.quotes([await lookout.submit("later", delay=60)])
    assert quote.at_latest is None
    assert quote.expected is not None
    assert quote.expected >= 60


async def test_bulk_is_promised_nothing(lookout: Lookout) -> None:
    await full_floor(lookout)
    [quote] = await lookout.quotes([await lookout.submit("regrade", bulk=True)])
    assert quote.at_latest is None
    assert quote.expected is not None


async def test_nothing_is_foreseen_while_the_queue_is_paused(lookout: Lookout, clock: Clock) -> None:
    await full_floor(lookout)
    id = await lookout.submit("waits")
    await lookout.desk.pause(lookout.queue, by="u")
    await lookout.heard()
    clock.now += SECOND
    assert await lookout.quotes([id]) == [Quote(None, None, None, None)]
    await lookout.desk.resume(lookout.queue)
    await lookout.heard()
    clock.now += SECOND
    [quote] = await lookout.quotes([id])
    assert quote.at_latest is not None


async def test_nothing_is_foreseen_without_a_slot(lookout: Lookout) -> None:
    assert await lookout.quotes([await lookout.submit("waits")]) == [Quote(None, None, None, None)]


async def test_workers_that_serve_different_things_allow_no_promise(lookout: Lookout, clock: Clock) -> None:
    await full_floor(lookout)
    id = await lookout.submit("waits")
    await lookout.works(1, ["handler:other"], "other")
    await lookout.heard()
    clock.now += SECOND
    [quote] = await lookout.quotes([id])
    assert quote.at_latest is None
    assert quote.expected is not None


async def test_only_waiting_jobs_have_an_estimate(lookout: Lookout) -> None:
    await lookout.works(1)
    id = await lookout.submit("runs")
    assert await lookout.quote(id) is None
    await lookout.starts()
    await lookout.ends(id)
    assert await lookout.quote(id) is None


# ---------------------------------------------------------------- what is expected


async def test_what_is_expected_follows_the_runs_that_were_seen(lookout: Lookout, clock: Clock) -> None:
    await _some_runs_of_a_second(lookout, clock)
    ids = [await lookout.submit(f"waits{n}", **asked("slow")) for n in range(5)]
    await lookout.heard()
    now = (clock.now - 1_000 * SECOND) / SECOND
    for number, quote in enumerate(await lookout.quotes(ids), 1):
        assert quote.expected is not None
        assert quote.expected - now == pytest.approx(number, rel=0.3)
        assert quote.at_latest is not None
        assert quote.at_latest - now >= 30 * number


async def test_a_server_that_starts_later_learns_from_what_has_ended(
    lookout: Lookout, elsewhere: Stores, clock: Clock
) -> None:
    await _some_runs_of_a_second(lookout, clock)
    ids = [await lookout.submit(f"waits{n}", **asked("slow")) for n in range(3)]
    now = (clock.now - 1_000 * SECOND) / SECOND
    async with looking_out(elsewhere, lookout.queue, clock) as other:
        for number, quote in enumerate(await other.quotes(ids), 1):
            assert quote.expected is not None
            assert quote.expected - now == pytest.approx(number, rel=0.3)


async def _some_runs_of_a_second(lookout: Lookout, clock: Clock) -> None:
    """Let ten slow jobs run for a second each on one slot; an eleventh has just begun."""
    await lookout.store.configure(ONE_SLOT)
    await lookout.works(1)
    for number in range(10):
        id = await lookout.submit(f"ran{number}", **asked("slow"))
        await lookout.starts()
        clock.now += SECOND
        await lookout.ends(id)
        await lookout.heard()
    await lookout.submit("runs", **asked("slow"))
    await lookout.heard()


async def test_runs_that_were_stopped_are_not_taken_for_short_ones(lookout: Lookout, clock: Clock) -> None:
    await lookout.store.configure(ONE_SLOT)
    await lookout.works(1)
    for number in range(10):
        id = await lookout.submit(f"cancelled{number}", **asked("slow"))
        await lookout.starts()
        clock.now += SECOND
        await lookout.desk.cancel(lookout.queue, id, by="u")
        await lookout.starts()
        await lookout.heard()
    await lookout.submit("runs", **asked("slow"))
    id = await lookout.submit("waits", **asked("slow"))
    await lookout.heard()
    now = (clock.now - 1_000 * SECOND) / SECOND
    [quote] = await lookout.quotes([id])
    assert quote.expected is not None
    assert quote.expected - now > 10


# ---------------------------------------------------------------- the picture


async def test_the_answer_to_a_put_has_an_estimate_already(lookout: Lookout) -> None:
    await full_floor(lookout)
    for number in range(50):
        document = await lookout.put(f"n{number}", **asked(CLASSES[number % 4]))
        assert document["estimate"]["at_latest"], number


async def test_a_newcomer_is_not_promised_the_slot_that_somebody_took_just_before(
    lookout: Lookout, clock: Clock
) -> None:
    await lookout.store.configure(ONE_SLOT)
    await lookout.works(1)
    for number in range(10):
        await lookout.heard()
        clock.now += SECOND
        await lookout.submit(f"runs{number}", **asked("fast"))
        document = await lookout.put(f"waits{number}", **asked("fast"))
        quote = quote_of(document)
        assert quote
        assert quote.at_latest == pytest.approx((clock.now - 1_000 * SECOND) / SECOND + 3 + SLACK + STOP)
        await lookout.starts()
        await lookout.ends(*lookout.held)
        await lookout.ends(*lookout.held)


async def test_a_look_at_the_house_puts_off_no_stop_that_was_asked_for(
    lookout: Lookout, clock: Clock
) -> None:
    await full_floor(lookout, ONE_SLOT, 1)
    [runs] = lookout.held
    id = await lookout.submit("waits", **asked("fast"))
    await lookout.desk.cancel(lookout.queue, runs, by="u")
    await lookout.heard()
    [before] = await lookout.quotes([id])
    clock.now += SECOND // 2
    await lookout.desk.pause(lookout.queue, by="u")
    await lookout.desk.resume(lookout.queue)
    await lookout.heard()
    [after] = await lookout.quotes([id])
    assert after.at_latest == before.at_latest


async def same_as_a_fresh_look(elsewhere: Stores, lookout: Lookout) -> None:
    """Compare lanes, runs and positions with those of a server that looks only now."""
    await lookout.heard()
    async with looking_out(elsewhere, lookout.queue, lookout.clock) as other:
        mine, theirs = lookout.foresight.picture, other.foresight.picture
        assert mine
        assert theirs
        assert mine.lanes.names() == theirs.lanes.names()
        assert _known(mine.runs) == _known(theirs.runs)
        assert mine.used() == theirs.used() == theirs.survey.used
    line = (await lookout.store.line(None, 500)).views
    for view in line:
        lane, order = standing(view)
        assert lookout.foresight.position(lane, order) == view.position


def _known(runs: dict[int, Running]) -> dict[int, Running]:
    """Give the runs without the moment of a stop, which only those know who heard of it."""
    return {record: run._replace(stopping=run.stopping and 1) for record, run in runs.items()}


@pytest.mark.parametrize("policy", ["borrow", "squeeze"])
@pytest.mark.parametrize("seed", range(3))
async def test_the_picture_that_is_followed_is_the_one_that_is_looked_at(
    lookout: Lookout, elsewhere: Stores, clock: Clock, policy: str, seed: int
) -> None:
    dice = random.Random(seed)
    await lookout.store.configure(replace(THREE, elastic=policy))  # type: ignore[arg-type]
    for number in range(60):
        clock.now += dice.choice([0, 0, SECOND, 4 * SECOND])
        waiting = [view.job.id for view in (await lookout.store.line(None, 500)).views]
        match dice.randrange(9):
            case 0 | 1 | 2 | 3:
                band = dice.choice([{}, {}, {"bulk": True}, {"immediate": True}])
                await lookout.submit(
                    f"j{number}",
                    who=f"user:{dice.randrange(3)}",
                    priority=dice.choice([5, 5, 2]),
                    delay=dice.choice([0, 0, 5]),
                    **asked(dice.choice(CLASSES)),
                    **band,
                )
            case 4:
                await lookout.works(dice.randrange(1, 5))
            case 5 if lookout.held:
                await lookout.ends(dice.choice(list(lookout.held)))
            case 6 if waiting:
                await lookout.desk.cancel(lookout.queue, dice.choice(waiting), by="u")
            case 7 if waiting:
                with contextlib.suppress(NotMovable):
                    await lookout.desk.release(lookout.queue, dice.choice(waiting))
            case _:
                await lookout.starts()
        if number % 6 == 0:
            await same_as_a_fresh_look(elsewhere, lookout)
    await same_as_a_fresh_look(elsewhere, lookout)


async def burst(lookout: Lookout, count: int) -> None:
    """Let many submit at once."""
    orders = [Order(f"b{n}", Submitter("user", str(n % 50)), "handler:grade", b"") for n in range(count)]
    for first in range(0, count, 100):
        await lookout.store.put(orders[first : first + 100])


@pytest.mark.parametrize("kind", ["valkey", "redis"])
async def test_after_a_burst_the_picture_is_the_one_that_is_looked_at(
    lookout: Lookout, elsewhere: Stores
) -> None:
    await burst(lookout, 5_000)
    await same_as_a_fresh_look(elsewhere, lookout)


@pytest.mark.parametrize("kind", ["valkey"])
async def test_behind_a_long_line_a_newcomer_is_foreseen_and_promised_in_the_answer_to_its_put(
    lookout: Lookout, clock: Clock
) -> None:
    await lookout.works(2)
    await burst(lookout, NEAR + 1_000)
    await lookout.heard()

    async def deep() -> bool:
        return (await lookout.put("probe"))["estimate"] is not None

    await eventually(deep, 20)
    for number in range(10):
        clock.now += SECOND // 100
        document = await lookout.put(f"late{number}")
        assert document["position"] > NEAR
        assert document["estimate"]["expected"]
        assert document["estimate"]["at_latest"]
        await lookout.starts()
        await lookout.ends(*list(lookout.held)[:1])
