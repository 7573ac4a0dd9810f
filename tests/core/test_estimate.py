"""Estimates: a promise that never moves later and is never broken, and a range that holds as it should."""

import random
from collections.abc import Iterator
from itertools import count

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from maitred.core.classes import DurationClass, Limit
from maitred.core.durations import Coverage, Durations
from maitred.core.estimate import Estimate, Forecast, Waiting
from maitred.core.floor import Kind
from maitred.core.job import BLOCKED, Band, Lane, Place, Submitter
from maitred.core.occupancy import Occupancy, Running
from maitred.core.plan import STEP
from maitred.core.settings import SECOND
from tests.core.simulation import FOREVER, Guest, Simulation
from tests.core.worlds import floors, guest, kinds, numbers, occupancy

CLASSES = (
    DurationClass("fast", 3 * SECOND),
    DurationClass("medium", 10 * SECOND, Limit(50_000, percent=True)),
    DurationClass("slow", 30 * SECOND, Limit(1)),
)
ONE_SLOT = tuple(each._replace(limit=each.limit and Limit(1)) for each in CLASSES)
NOW = 1_000 * SECOND
FAST, MEDIUM, SLOW = (Waiting(level, elastic=False, need="a") for level in (1, 2, 3))
ELASTIC = Waiting(1, elastic=True, need="a")


def estimates(forecast: Forecast) -> list[Estimate]:
    return [forecast.estimate(place) for place in range(len(forecast))]


def ran(seconds: float, level: int = 1, kind: Kind = Kind.SPECIFIC) -> Running:
    """Give a job that has run for so long; an elastic one may run as long as the slowest."""
    granted = CLASSES[-1 if kind is Kind.ELASTIC else level - 1].cap
    return Running(NOW - round(seconds * SECOND), level, granted, kind, "a")


class Story:
    """A floor on which things happen, and what was promised to those in line."""

    def __init__(self, floor: Simulation) -> None:
        self.floor = floor
        self.names: Iterator[int] = count()
        self.promised: dict[int, int] = {}
        floor.cycle()

    def look(self) -> None:
        """Compare each promise with the one before it, or with the start."""
        floor = self.floor
        forecast = Forecast(occupancy(floor), [it.waits() for it in floor.line])
        promised = {}
        for it, estimate in zip(floor.line, estimates(forecast), strict=True):
            expected, low, high, at_latest, as_of = estimate
            assert at_latest is not None
            assert low is not None
            assert expected is not None
            assert high is not None
            assert as_of == floor.now <= low <= expected <= high <= at_latest
            promised[it.name] = at_latest
        for name, before in self.promised.items():
            now = promised.get(name, floor.started.get(name, 0))
            assert now <= before, f"job {name} was promised {before} and is now at {now}"
        self.promised = promised

    def goes_on(self, time: int) -> None:
        """Let time pass, looking at each event."""
        until = self.floor.now + time
        while (event := self.floor.next_event()) is not None and event < until:
            self.floor.go_to(event)
            self.look()
        self.floor.go_to(until)

    def happens(self, what: str, number: int, kind: Kind) -> None:
        floor = self.floor
        running = floor.running[number % len(floor.running)] if floor.running else None
        if what == "join":
            lasts = number % 40 if number % 3 == 0 else FOREVER
            floor.line.append(guest(floor.caps, next(self.names), number, kind, lasts))
        elif what == "try" and floor.free()[0] > 0:
            floor.seat(guest(floor.caps, -100 - next(self.names), 1, Kind.INTERACTIVE))
        elif what == "leave" and floor.line:
            del self.promised[floor.line.pop(number % len(floor.line)).name]
        elif what == "finish" and running:
            running.lasts = floor.now - running.start
        elif what == "cancel" and running and running.stopping is None:
            floor.stop(running)
        elif what == "shorten" and running and running.kind is Kind.SPECIFIC:
            running.granted = min(running.granted, 1 + number % 30)
        elif what == "wait":
            self.goes_on(number % 7)
        floor.cycle()
        self.look()


happenings = st.sampled_from(
    ["join", "join", "join", "join", "try", "leave", "finish", "cancel", "shorten", "wait", "wait", "wait"]
)


@settings(max_examples=1500, deadline=None)
@given(floors(0, 1, 3, 12, 50), st.lists(st.tuples(happenings, numbers, kinds), max_size=22))
def test_f16_a_promise_never_moves_later_and_is_never_broken(
    floor: Simulation, story: list[tuple[str, int, Kind]]
) -> None:
    told = Story(floor)
    for what, number, kind in story:
        told.happens(what, number, kind)
    while floor.line:
        told.goes_on(30)
        told.look()


@settings(max_examples=500, deadline=None)
@given(
    floors(0, 5),
    st.lists(st.tuples(numbers, kinds), max_size=9),
    st.lists(st.tuples(numbers, kinds), max_size=9),
)
def test_f15_appending_changes_no_earlier_estimate(
    floor: Simulation, line: list[tuple[int, Kind]], more: list[tuple[int, Kind]]
) -> None:
    places = [guest(floor.caps, 0, number, kind).waits() for number, kind in line + more]
    forecast = Forecast(occupancy(floor), places[: len(line)])
    before = estimates(forecast)
    forecast.extend(places[len(line) :])
    assert estimates(forecast)[: len(line)] == before
    assert estimates(forecast) == estimates(Forecast(occupancy(floor), places))


@pytest.mark.parametrize("kill_after", [0, 400_000])
def test_f17_an_elastic_job_is_sure_of_the_fastest_cap_only(kill_after: int) -> None:
    floor = Occupancy(NOW, ONE_SLOT, 1, [ran(1, kind=Kind.ELASTIC)], kill_after)
    assert Forecast(floor, [FAST]).estimate(0).at_latest == NOW + 2 * SECOND + kill_after


def test_whoever_needs_the_slot_of_an_overdue_or_interactive_job_waits_for_one_stop() -> None:
    for kind, seconds in ((Kind.ELASTIC, 5), (Kind.INTERACTIVE, 1)):
        floor = Occupancy(NOW, ONE_SLOT, 1, [ran(seconds, kind=kind)], 400_000)
        assert Forecast(floor, [FAST]).estimate(0).at_latest == NOW + 400_000
        asked = floor.running[0]._replace(stopping=NOW - 300_000)
        assert Forecast(floor._replace(running=[asked]), [FAST]).estimate(0).at_latest == NOW + 100_000


def test_a_level_comes_free_with_the_slot_of_the_job_that_held_it() -> None:
    overdue = [ran(5, kind=Kind.ELASTIC) for _ in range(3)]
    floor = Occupancy(NOW, CLASSES, 4, [ran(4, level=3), *overdue], 400_000)
    assert Forecast(floor, [SLOW]).estimate(0).at_latest == NOW + 26_400_000


def test_timers_that_are_late_move_no_promise() -> None:
    floor = Occupancy(NOW, ONE_SLOT, 1, [ran(1, kind=Kind.ELASTIC)], 400_000, slack=50_000)
    promise = Forecast(floor, [FAST]).estimate(0).at_latest
    assert promise == NOW + 2_450_000
    overdue = floor._replace(now=NOW + 2_050_000)
    assert Forecast(overdue, [FAST]).estimate(0).at_latest == promise
    stopping = [floor.running[0]._replace(stopping=NOW + 2_050_000)]
    assert Forecast(overdue._replace(running=stopping), [FAST]).estimate(0).at_latest == promise


def test_a_place_with_free_units_is_expected_now() -> None:
    assert Forecast(Occupancy(NOW, CLASSES, 1), [FAST]).estimate(0) == Estimate(NOW, NOW, NOW, NOW, NOW)


def test_who_is_not_due_is_promised_nothing_and_expected_from_its_release_on() -> None:
    later = FAST._replace(release=NOW + 7 * SECOND)
    estimate = Forecast(Occupancy(NOW, CLASSES, 1), [later]).estimate(0)
    assert estimate == Estimate(later.release, later.release, later.release, None, NOW)
    assert Forecast(Occupancy(NOW + 8 * SECOND, CLASSES, 1), [later]).estimate(0).at_latest
    eager = Forecast(Occupancy(NOW, CLASSES, 1, eager=True), [later]).estimate(0)
    assert eager == Estimate(NOW, NOW, NOW, None, NOW)


def test_bulk_and_blocked_places_and_those_behind_are_promised_nothing() -> None:
    for weak in (FAST._replace(bulk=True), FAST._replace(blocked=True)):
        found = estimates(Forecast(Occupancy(NOW, CLASSES, 1), [SLOW, weak, FAST]))
        assert [each.at_latest is None for each in found] == [False, True, True]
        assert all(each.expected is not None for each in found)


def test_bulk_is_expected_to_let_those_pass_who_fall_due_after_it() -> None:
    bulk, later = FAST._replace(bulk=True), FAST._replace(release=NOW + 7 * SECOND)
    forecast = Forecast(Occupancy(NOW, CLASSES, 1), [*[bulk] * 100, later, bulk._replace(release=NOW + 9)])
    assert forecast.estimate(100).expected == later.release
    assert forecast.estimate(99).expected == NOW + 99 * 1_500_000
    assert forecast.estimate(101).expected == NOW + 101 * 1_500_000


@pytest.mark.parametrize(
    "floor",
    [
        Occupancy(NOW, CLASSES, 2, stages=2),
        Occupancy(NOW, CLASSES, 2, alike=False),
        Occupancy(NOW, CLASSES, 2, [ran(1, level=2)._replace(draining=True)]),
    ],
)
def test_where_no_promise_can_be_made_a_start_is_expected_still(floor: Occupancy) -> None:
    estimate = Forecast(floor, [MEDIUM]).estimate(0)
    assert estimate.at_latest is None
    assert estimate.expected is not None


def test_a_draining_worker_holds_no_slot_of_the_floor() -> None:
    floor = Occupancy(NOW, CLASSES, 2, [ran(1, level=2)._replace(draining=True)])
    assert [len(units) for units in floor.latest()] == [2, 1, 1]
    assert floor.latest()[:2] == [[NOW, NOW], [NOW + 9 * SECOND]]
    assert floor._replace(running=[ran(1)._replace(draining=True)]).binding


def test_squeezed_an_elastic_job_gives_its_higher_levels_up_when_asked() -> None:
    floor = Occupancy(NOW, CLASSES, 2, [ran(1, level=3)._replace(kind=Kind.ELASTIC)], 400_000)
    assert Forecast(floor, [SLOW]).estimate(0).at_latest == NOW
    overdue = floor._replace(now=NOW + 4 * SECOND)
    assert Forecast(overdue, [SLOW]).estimate(0).at_latest == overdue.now + 400_000


@pytest.mark.parametrize("floor", [Occupancy(NOW, CLASSES, 2, paused=True), Occupancy(NOW, CLASSES, 0)])
def test_nothing_is_known_of_a_queue_that_starts_nobody(floor: Occupancy) -> None:
    assert Forecast(floor, [FAST]).estimate(0) == Estimate(None, None, None, None, NOW)


def test_a_place_that_nobody_serves_waits_and_holds_up_nobody() -> None:
    forecast = Forecast(Occupancy(NOW, CLASSES, 1, needs=frozenset("b")), [FAST, FAST._replace(need="b")])
    assert forecast.estimate(0) == Estimate(None, None, None, None, NOW)
    assert forecast.estimate(1) == Estimate(NOW, NOW, NOW, NOW, NOW)


def test_a_place_of_the_line_is_described_whole() -> None:
    who = Submitter("user", "1")
    scheduled = Place(Lane(Band.SCHEDULED, 5, 2, "a"), 7, 1, who, 0)
    front = Place(Lane(Band.FRONT, 0, 1, BLOCKED + "a"), 7, 1, who, 3)
    bulk = Place(Lane(Band.BULK, 5, 1, "a"), 7, 1, who, 0)
    assert Waiting.at(scheduled, elastic=False) == MEDIUM._replace(release=7)
    assert Waiting.at(front, elastic=True) == ELASTIC._replace(blocked=True)
    assert Waiting.at(bulk, elastic=True) == ELASTIC._replace(release=7, bulk=True)


def test_a_newcomer_is_imagined_as_it_would_be_planned_there() -> None:
    dice = random.Random(3)
    some = [FAST, MEDIUM, SLOW, ELASTIC] * 3 + [FAST._replace(blocked=True)]
    line = [dice.choice(some[:12]) for _ in range(STEP * 2)]
    floor = Occupancy(NOW, CLASSES, 6, [ran(2), ran(2, kind=Kind.ELASTIC), ran(4, level=2)], 400_000)
    forecast = Forecast(floor, line)
    for _ in range(30):
        place, new = dice.randrange(len(line) + 1), dice.choice(some)
        anew = Forecast(floor, [*line[:place], new, *line[place:]])
        assert forecast.imagine(place, new) == anew.estimate(place)
    assert forecast.estimate(len(line) - 1) == Forecast(floor, line).estimate(len(line) - 1), "nobody moved"


def test_what_was_learned_moves_what_is_expected_and_no_promise() -> None:
    floor = Occupancy(NOW, ONE_SLOT, 1, [ran(1, level=3)])
    before = Forecast(floor, [FAST]).estimate(0)
    durations = Durations()
    for _ in range(50):
        durations.note("a", 3, 2 * SECOND)
    after = Forecast(floor, [FAST], durations).estimate(0)
    assert after.at_latest == before.at_latest == NOW + 29 * SECOND
    assert before.expected == NOW + 14_500_000
    assert after.expected == pytest.approx(NOW + SECOND, abs=SECOND // 5)


@pytest.mark.parametrize("slots", [1, 8])
def test_four_of_five_ranges_hold_the_real_start(slots: int) -> None:
    dice = random.Random(slots)
    durations, coverage = Durations(), Coverage()
    caps = [each.cap for each in CLASSES]

    def some(name: int) -> Guest:
        kind = dice.choice([Kind.SPECIFIC, Kind.SPECIFIC, Kind.ELASTIC])
        new = guest(caps, name, dice.choice([0, 0, 0, 1, 1, 2]), kind)
        new.lasts = 1 + round(dice.lognormvariate(-1.2, 0.7) * caps[new.level - 1])
        return new

    for _ in range(300):
        seen = some(0)
        taken = min(seen.lasts, seen.granted)
        elastic = seen.kind is Kind.ELASTIC
        durations.note("", seen.level, taken, elastic=elastic, censored=taken < seen.lasts)
    for _ in range(60):
        floor = Simulation(
            caps, Occupancy(NOW, CLASSES, slots).limits, now=NOW, line=[some(n) for n in range(30)]
        )
        floor.cycle()
        quoted = Forecast(occupancy(floor), [it.waits() for it in floor.line], durations, coverage)
        ranges = [(it.name, quoted.estimate(place)) for place, it in enumerate(floor.line)][::4]
        floor.play()
        for name, (_, low, high, at_latest, _) in ranges:
            assert low is not None
            assert high is not None
            assert at_latest is not None
            assert floor.started[name] <= at_latest
            coverage.note(low, high, floor.started[name])
    assert coverage.share == pytest.approx(0.8, abs=0.1)
