"""What the Floor promises for any mix of jobs, tried on random small ones in virtual time."""

from collections.abc import Callable
from typing import Any, Literal

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from benchmarks.simulation.engine import Engine
from benchmarks.simulation.visit import COMPLETED, Arrival, Visit
from maitred.core.classes import PERCENT, DurationClass, Limit
from maitred.core.house import House
from maitred.core.invariants import violations
from maitred.core.job import Order, Phase, Submitter
from maitred.core.plan import Plan
from maitred.core.settings import SECOND, Settings
from maitred.core.snapshot import take_snapshot

POLICIES: list[Literal["borrow", "squeeze"]] = ["borrow", "squeeze"]
FAST, MEDIUM, SLOW = 1, 2, 3
CAPS = (3, 10, 30)
NAMES = ("fast", "medium", "slow")
MILLISECOND = 1_000
GAPS = [1, 300, 700, 1_000, 2_300, 5_000]
RUNS = [1, 500, 1_000, 2_000, 2_900, 3_000, 5_100, 8_000, 12_000, 25_000, 40_000]

quick = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def people(
    draw: st.DrawFn, *, together: bool = False, sessions: bool = False, submitters: int = 0
) -> list[Arrival]:
    """Jobs that come one by one, or some `together` in one call; each of its own submitter if not said."""
    arrivals: list[Arrival] = []
    at = 0
    for number in range(draw(st.integers(1, 14))):
        at += draw(st.sampled_from([0, 0, *GAPS] if together else GAPS)) * MILLISECOND
        interactive = sessions and draw(st.integers(0, 6)) == 0
        who = draw(st.integers(1, submitters)) if submitters else number
        run = draw(st.sampled_from(RUNS)) * MILLISECOND
        level = None if interactive else draw(st.sampled_from([None, None, FAST, MEDIUM, SLOW]))
        delay = draw(st.sampled_from([0, 0, 5_000])) * MILLISECOND if not together else 0
        arrivals.append(Arrival(at, f"j{number}", f"u{who}", run, level, interactive, delay))
    return arrivals


@st.composite
def limits(draw: st.DrawFn) -> tuple[int, int, int]:
    """Limits of three levels, none greater than the one above."""
    slots = draw(st.integers(1, 5))
    medium = draw(st.integers(1, slots))
    return slots, medium, draw(st.integers(1, medium))


def counted(*limits: int) -> tuple[DurationClass, ...]:
    """The classes with these limits as counts; the first one's is the number of slots."""
    return tuple(
        DurationClass(name, cap * SECOND, Limit(limit) if at else None)
        for at, (name, cap, limit) in enumerate(zip(NAMES, CAPS, limits, strict=False))
    )


def shared(*percents: int) -> tuple[DurationClass, ...]:
    """The classes with these limits in percent."""
    rest = [Limit(percent * PERCENT, percent=True) for percent in percents]
    return tuple(
        DurationClass(name, cap * SECOND, limit)
        for name, cap, limit in zip(NAMES, CAPS, [None, *rest], strict=True)
    )


def played(
    arrivals: list[Arrival],
    classes: tuple[DurationClass, ...],
    slots: int,
    *,
    look: Callable[[House], None] | None = None,
    **more: Any,
) -> Engine:
    """Play a workload; stops take no time unless `kill_after` says so."""
    engine = Engine(Settings(classes=classes, **{"kill_after": 0, **more}), slots, seed=7, look=look)
    engine.play(arrivals)
    return engine


def starts(engine: Engine) -> dict[str, int | None]:
    """When each job that stood in line started."""
    return {id: visit.start for id, visit in engine.visits.items() if not visit.arrival.interactive}


@settings(quick, max_examples=400)
@given(limits=limits(), arrivals=people(sessions=True) | people(together=True))
def test_borrow_and_squeeze_start_everybody_at_the_same_time(
    limits: tuple[int, int, int], arrivals: list[Arrival]
) -> None:
    borrow, squeeze = (played(arrivals, counted(*limits), limits[0], elastic=each) for each in POLICIES)
    assert starts(borrow) == starts(squeeze)


@settings(quick, max_examples=400)
@given(limits=limits(), arrivals=people(submitters=3))
def test_they_do_so_too_where_a_submitter_has_several_jobs(
    limits: tuple[int, int, int], arrivals: list[Arrival]
) -> None:
    """Which of them has a place would hang on what comes first in the same microsecond, so none do."""
    apart = [each._replace(at=each.at + 17 * number) for number, each in enumerate(arrivals)]
    borrow, squeeze = (played(apart, counted(*limits), limits[0], elastic=each) for each in POLICIES)
    assert starts(borrow) == starts(squeeze)


@settings(quick, max_examples=1_000)
@given(limits=limits(), crowd=people(), policy=st.sampled_from(POLICIES))
def test_planned_starts_are_those_of_the_floor(
    limits: tuple[int, int, int], crowd: list[Arrival], policy: Literal["borrow", "squeeze"]
) -> None:
    """All come at once, and each takes as long as the plan says: no start is planned wrong."""
    crowd = [each._replace(at=0, delay=0) for each in crowd]
    classes = counted(*limits)
    played_out = starts(played(crowd, classes, limits[0], elastic=policy))
    plan = Plan([[0] * limit for limit in limits])
    for each in crowd:
        level = each.level or FAST
        planned = plan.append(level, min(each.run, classes[level - 1].cap))
        begun = played_out[each.id]
        assert begun is not None
        assert begun - min(start for start in played_out.values() if start is not None) == planned


def running(house: House) -> set[str]:
    return {job.id for job in house.jobs.values() if job.phase is Phase.RUNNING}


def put(house: House, now: int, *jobs: tuple[str, int | None]) -> None:
    """Submit jobs in one call, each of its own submitter; those without a class are elastic."""
    orders = [
        Order(id, Submitter("user", id), "n", b"", level=level or 1, elastic=level is None, delay=0)
        for id, level in jobs
    ]
    house.put(orders, now * SECOND, bytes(16))


def open_house(*limits: int, policy: Literal["borrow", "squeeze"]) -> House:
    house = House("q", Settings(classes=counted(*limits), elastic=policy, lease=3_600 * SECOND))
    house.join("w", limits[0], frozenset({"n"}), 1 * SECOND, bytes(16))
    return house


@pytest.mark.parametrize("policy", ["borrow", "squeeze"])
def test_of_two_that_come_in_one_call_the_first_takes_the_last_slot(
    policy: Literal["borrow", "squeeze"],
) -> None:
    house = open_house(2, 2, 1, policy=policy)
    put(house, 2, ("e", None))
    put(house, 3, ("s", SLOW), ("f", FAST))
    assert running(house) == {"e", "s"}


@pytest.mark.parametrize("policy", ["borrow", "squeeze"])
def test_of_two_that_waited_for_the_end_of_a_pause_the_first_takes_the_last_slot(
    policy: Literal["borrow", "squeeze"],
) -> None:
    house = open_house(2, 2, 1, policy=policy)
    put(house, 2, ("e", None))
    house.pause("op", "", 2 * SECOND, bytes(16))
    put(house, 3, ("s", SLOW))
    put(house, 4, ("f", FAST))
    house.resume(4 * SECOND, bytes(16))
    assert running(house) == {"e", "s"}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "classes",
    [shared(50, 25), shared(75, 20), counted(9, 3, 1)],
    ids=["50 and 25 %", "75 and 20 %", "3 and 1"],
)
def test_one_more_slot_makes_nobody_start_later(
    policy: Literal["borrow", "squeeze"], classes: tuple[DurationClass, ...]
) -> None:
    @quick
    @given(arrivals=people(sessions=True), slots=st.integers(1, 5))
    def holds(arrivals: list[Arrival], slots: int) -> None:
        few, more = (starts(played(arrivals, classes, each, elastic=policy)) for each in (slots, slots + 1))
        later = {id: (few[id], more[id]) for id in few if (more[id] or 0) > (few[id] or 0)}
        assert not later

    holds()


@quick
@given(
    arrivals=people(sessions=True) | people(together=True),
    slots=st.integers(1, 5),
    policy=st.sampled_from(POLICIES),
    levels=st.integers(1, 3),
    kill_after=st.sampled_from([0, 400_000, 3_000_000]),
)
def test_f20_with_equal_limits_or_one_class_the_start_order_is_the_line_order(
    arrivals: list[Arrival], slots: int, policy: str, levels: int, kill_after: int
) -> None:
    arrivals = [
        each._replace(level=None if each.level is None else min(each.level, levels)) for each in arrivals
    ]
    engine = played(arrivals, counted(*[slots] * levels), slots, elastic=policy, kill_after=kill_after)
    in_line = [each for each in arrivals if not each.interactive]
    line_order = [each.id for each in sorted(in_line, key=lambda each: each.at + (each.delay or 0))]
    assert [id for id in engine.started if id in set(line_order)] == line_order


@quick
@given(
    limits=limits(),
    arrivals=people(sessions=True) | people(together=True) | people(sessions=True, submitters=3),
    policy=st.sampled_from(POLICIES),
    order=st.sampled_from(["newest-first", "oldest-first"]),
    kill_after=st.sampled_from([0, 400_000, 3_000_000]),
)
def test_whatever_comes_no_rule_is_broken_at_any_moment(
    limits: tuple[int, int, int], arrivals: list[Arrival], policy: str, order: str, kill_after: int
) -> None:
    def look(house: House) -> None:
        assert violations(take_snapshot(house), house.settings) == []

    engine = played(
        arrivals, counted(*limits), limits[0], elastic=policy, order=order, kill_after=kill_after, look=look
    )
    for visit in engine.visits.values():
        assert ended_rightly(visit, kill_after), visit


def ended_rightly(visit: Visit, kill_after: int) -> bool:
    """A run that was stopped had its time; only elastic ones are cut, and only sessions halted or denied."""
    arrival, ran = visit.arrival, visit.held - kill_after
    fastest, longest = CAPS[0] * SECOND, CAPS[-1] * SECOND
    match visit.code:
        case "cut":
            return arrival.level is None and not arrival.interactive and ran >= fastest
        case "time-limit":
            least = fastest if arrival.level is None else CAPS[arrival.level - 1] * SECOND
            return least <= ran <= longest
        case "halted" | "denied":
            return arrival.interactive
    return visit.code == COMPLETED and visit.held == arrival.run


@quick
@given(limits=limits(), arrivals=people(together=True), kill_after=st.sampled_from([400_000, 3_000_000]))
def test_borrow_stops_at_most_one_for_each_that_waited(
    limits: tuple[int, int, int], arrivals: list[Arrival], kill_after: int
) -> None:
    visits = played(arrivals, counted(*limits), limits[0], kill_after=kill_after).visits.values()
    assert sum(visit.code == "cut" for visit in visits) <= sum(visit.wait > 0 for visit in visits)
