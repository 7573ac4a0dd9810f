"""The plan: one pass in line order is exact, and what happens to one job harms nobody that it should not."""

import random

import hypothesis.strategies as st
from hypothesis import given, settings

from maitred.core.classes import DurationClass, Limit, limits
from maitred.core.floor import Kind
from maitred.core.occupancy import Occupancy
from maitred.core.plan import STEP, Plan
from tests.core.simulation import Guest, Simulation
from tests.core.worlds import NOW, floors, guest, kinds, numbers, occupancy

lines = st.lists(st.tuples(kinds, numbers, numbers), min_size=1, max_size=14)
Job = tuple[int, int]


def span(floor: Simulation, it: Guest) -> int:
    return min(it.lasts, floor.caps[0]) if it.kind is Kind.ELASTIC else it.lasts


def stand(floor: Simulation, line: list[tuple[Kind, int, int]]) -> None:
    """Say how long each will run, and put these jobs in line."""
    for place, it in enumerate(floor.running):
        elapsed = floor.now - it.start
        it.lasts = elapsed + 1 + (place * 7) % max(1, it.granted - elapsed)
    for name, (kind, number, lasts) in enumerate(line):
        it = guest(floor.caps, name, number, kind)
        it.lasts = 1 + lasts % it.granted
        floor.line.append(it)


def planned(units: list[list[int]], jobs: list[Job]) -> list[int]:
    plan = Plan(units)
    return [plan.append(*job) for job in jobs]


def jobs_of(floor: Simulation, line: list[tuple[Kind, int, int]]) -> list[Job]:
    stand(floor, line)
    return [(it.level, span(floor, it)) for it in floor.line]


@settings(max_examples=1500, deadline=None)
@given(floors(), lines)
def test_planned_starts_are_the_real_ones(floor: Simulation, line: list[tuple[Kind, int, int]]) -> None:
    jobs = jobs_of(floor, line)
    starts = planned(occupancy(floor, told=True).latest(), jobs)
    assert dict(enumerate(starts)) == floor.play()


@settings(max_examples=500, deadline=None)
@given(floors(), lines, st.lists(st.integers(NOW, NOW + 50), min_size=14, max_size=14))
def test_planned_starts_are_the_real_ones_for_places_that_fall_due_later(
    floor: Simulation, line: list[tuple[Kind, int, int]], releases: list[int]
) -> None:
    stand(floor, line)
    for it, release in zip(floor.line, sorted(releases), strict=False):
        it.release = release
    plan = Plan(occupancy(floor, told=True).latest())
    starts = {it.name: plan.append(it.level, span(floor, it), it.release) for it in floor.line}
    assert starts == floor.play()


@settings(max_examples=500, deadline=None)
@given(floors(), lines, numbers)
def test_levels_over_their_limit_drain_first(
    floor: Simulation, line: list[tuple[Kind, int, int]], number: int
) -> None:
    jobs = jobs_of(floor, line)
    for level in range(1, len(floor.limits)):
        floor.limits[level] = min(floor.limits[level - 1], 1 + number % floor.limits[level])
    starts = planned(occupancy(floor, told=True).latest(), jobs)
    assert dict(enumerate(starts)) == floor.play()


@settings(max_examples=700, deadline=None)
@given(floors(), lines, numbers)
def test_f18_cancelling_delays_nobody_behind_and_changes_nobody_before(
    floor: Simulation, line: list[tuple[Kind, int, int]], number: int
) -> None:
    jobs = jobs_of(floor, line)
    units = occupancy(floor, told=True).latest()
    before = planned(units, jobs)
    place = number % len(jobs)
    after = planned(units, jobs[:place] + jobs[place + 1 :])
    assert after[:place] == before[:place]
    assert all(new <= old for new, old in zip(after[place:], before[place + 1 :], strict=True))


@settings(max_examples=700, deadline=None)
@given(floors(), lines, numbers, numbers)
def test_f18_a_shorter_duration_in_the_same_class_delays_nobody(
    floor: Simulation, line: list[tuple[Kind, int, int]], number: int, shorter: int
) -> None:
    jobs = jobs_of(floor, line)
    units = occupancy(floor, told=True).latest()
    before = planned(units, jobs)
    place = number % len(jobs)
    level, lasts = jobs[place]
    jobs[place] = (level, 1 + shorter % lasts)
    after = planned(units, jobs)
    assert after[: place + 1] == before[: place + 1]
    assert all(new <= old for new, old in zip(after, before, strict=True))


def test_a_job_that_changes_to_a_faster_class_comes_before_those_who_would_have_overtaken_it() -> None:
    units = [[5, 8], [8]]
    assert planned(units, [(2, 10), (1, 3)]) == [8, 5]
    assert planned(units, [(1, 3), (1, 3)]) == [5, 8]


@settings(max_examples=500, deadline=None)
@given(floors(), lines, st.lists(st.integers(1, 100), min_size=5, max_size=5))
def test_one_more_slot_makes_nobody_start_later(
    floor: Simulation, line: list[tuple[Kind, int, int]], percents: list[int]
) -> None:
    shares = [None, *(Limit(each * 1_000, percent=True) for each in sorted(percents, reverse=True))]
    classes = [DurationClass("", cap, share) for cap, share in zip(floor.caps, shares, strict=False)]
    jobs = jobs_of(floor, line)
    seen = occupancy(floor, told=True)
    fewer, more = (Occupancy(NOW, classes, floor.limits[0] + added, seen.running) for added in (0, 1))
    assert more.limits == limits(classes, floor.limits[0] + 1)
    starts = zip(planned(more.latest(), jobs), planned(fewer.latest(), jobs), strict=True)
    assert all(new <= old for new, old in starts)


def test_appending_moves_nobody_and_a_long_line_can_be_taken_up_again_anywhere() -> None:
    dice = random.Random(1)
    units = [[dice.randrange(9) for _ in range(count)] for count in (5, 3, 2)]
    levels = [dice.randint(1, 3) for _ in range(3 * STEP)]
    spans = [dice.randint(1, 10 * level) for level in levels]
    whole = Plan(units)
    whole.extend(levels, spans)
    assert planned(units, list(zip(levels, spans, strict=True))) == whole.ready
    plan = Plan(units)
    plan.extend(levels, spans)
    for place in (2 * STEP, 2 * STEP - 1, STEP + 1, 3, 0, 10 * STEP):
        branch, left = plan.fork(place)
        assert 0 <= min(place, 3 * STEP) - left < STEP
        branch.extend(levels[left:], spans[left:])
        assert branch.ready == whole.ready[left:]
        assert plan.ready == whole.ready


def test_one_that_can_never_start_takes_nothing() -> None:
    assert planned([[4, 6], [6]], [(0, 9), (2, 3), (0, 9), (1, 3)]) == [0, 6, 0, 4]
