"""When a waiting job will start: at the latest, and as expected.

The plan of `plan.py` is made twice from what the Floor holds at a moment (an `Occupancy`) and from the places
in line order. With every job running to its cap and every stop taking its time, it gives `at_latest`: a
promise to a place, which never moves later and is never broken while no worker leaves and nothing comes in
before the place; a job that changes to a faster class does so, for those whom it would have let overtake.
With learned durations it gives `expected` and a range.

A unit held by an overdue elastic or an interactive job is free one stop after now. That this moment moves on
with the clock harms no promise: whoever needs nothing but a slot has such a job stopped at once, and whoever
still waits for a higher level gets, with the unit of that level, the slot of the job that held it.
"""

from collections.abc import Iterable
from math import sqrt
from typing import NamedTuple

from maitred.core.durations import Coverage, Durations
from maitred.core.job import BLOCKED, Band, Place
from maitred.core.occupancy import BITS, Occupancy, packed, unpacked
from maitred.core.plan import Plan

# Four of five values of a normal distribution lie this many standard deviations around its mean, or nearer.
_REACH = 1.2816


class Estimate(NamedTuple):
    """When a place will be taken, in microseconds since 1970; what nobody can know is None.

    low <= expected <= high <= at_latest, and none of them is before `as_of`, the moment of the snapshot.
    """

    expected: int | None
    low: int | None
    high: int | None
    at_latest: int | None
    as_of: int


class Waiting(NamedTuple):
    """A place in line as the planner sees it, with the job that it would serve now.

    `release` is 0 for places that are always due. A `blocked` one cannot start before a stop is confirmed.
    """

    level: int = 1
    elastic: bool = True
    need: str = ""
    release: int = 0
    bulk: bool = False
    blocked: bool = False

    @classmethod
    def at(cls, place: Place, *, elastic: bool) -> "Waiting":
        """Describe a place of the Line."""
        band, _, level, need = place.lane
        release = place.release if band.pooled else 0
        blocked = need.startswith(BLOCKED)
        bulk = band is Band.BULK
        return cls(level, elastic, need.removeprefix(BLOCKED), release, bulk, blocked)


class _Costs(NamedTuple):
    """What each kind of place costs: columns, by the number of the kind.

    `levels` are the classes that they need, 0 if nobody serves them, and `ahead` the same without bulk;
    `longest` and `usual` how long they hold their units; `firm` tells who can be given a promise.
    """

    levels: list[int]
    ahead: list[int]
    longest: list[int]
    usual: list[int]
    firm: list[bool]


class Forecast:
    """The estimates of one queue, kept while its line and its Floor change.

    A server tells it the line once, then each change of it, and every so often what the Floor holds (`look`).
    Places are counted from 0 in line order. Nothing is planned before it is asked for, and a change costs
    only the part of the line behind it, from the checkpoint before it on; appending costs a few microseconds
    and changes no earlier estimate.

    `at_latest` is None for a place that is not due or in bulk; for a blocked place and those behind it; and
    wherever the Occupancy is not `binding`. All parts are None while the queue is paused or has no live slot,
    and for a place whose need nobody serves; such a place holds up nobody.

    Bulk yields to all others, so it delays nobody in what is expected, not even those who fall due after it.
    """

    def __init__(
        self,
        occupancy: Occupancy,
        line: Iterable[Waiting] = (),
        durations: Durations | None = None,
        coverage: Coverage | None = None,
    ) -> None:
        """Begin with this Floor and this line, and with what was learned so far."""
        self.durations = durations or Durations()
        self.coverage = coverage or Coverage()
        self._numbers: dict[Waiting, int] = {}
        self._bulk: list[int] = []
        self._kinds: list[int] = []
        self._releases: list[int] = []
        self.look(occupancy)
        self.extend(line)

    def __len__(self) -> int:
        """Tell how many places are in line."""
        return len(self._kinds)

    def look(self, occupancy: Occupancy) -> None:
        """Take a new snapshot of the Floor, and what was learned so far; all is planned anew when asked."""
        self._occupancy = occupancy
        self._limits = occupancy.limits
        self._costs = _Costs([], [], [], [], [])
        for kind in self._numbers:
            self._weigh(kind)
        self._sure = 0
        self._latest = Plan(occupancy.latest()) if occupancy.binding else None
        units = occupancy.expected(self.durations) if occupancy.open else []
        self._expected = Plan(units) if units else None
        self._expected_bulk = Plan(units) if units else None

    def append(self, waiting: Waiting) -> None:
        """Add a place at the end of the line."""
        self._kinds.append(self._kind(waiting))
        self._releases.append(waiting.release << BITS)

    def extend(self, line: Iterable[Waiting]) -> None:
        """Add many places at the end of the line."""
        for waiting in line:
            self.append(waiting)

    def insert(self, place: int, waiting: Waiting) -> None:
        """Add a place in the middle of the line."""
        self._kinds.insert(place, self._kind(waiting))
        self._releases.insert(place, waiting.release << BITS)
        self._changed(place)

    def remove(self, place: int) -> None:
        """Take a place out of the line."""
        del self._kinds[place], self._releases[place]
        self._changed(place)

    def replace(self, place: int, waiting: Waiting) -> None:
        """Change what is known of a place: a shorter class, another job that it serves now."""
        self._kinds[place] = self._kind(waiting)
        self._releases[place] = waiting.release << BITS
        self._changed(place)

    def estimate(self, place: int) -> Estimate:
        """Tell when the place will be taken."""
        kind = self._kinds[place]
        ready = self._ready(place) if self._costs.levels[kind] else None
        return self._quote(kind, self._releases[place], ready, self._promise(place))

    def imagine(self, place: int, waiting: Waiting) -> Estimate:
        """Tell when a newcomer would be taken that stood before this place; the line stays as it is."""
        kind, costs, release = self._kind(waiting), self._costs, waiting.release << BITS
        plan, levels, releases = self._usual_plan(kind)
        ready = at_latest = None
        if costs.levels[kind] and plan is not None:
            ready = self._imagined(plan, place, kind, levels, costs.usual, releases)
        due = release <= self._occupancy.now << BITS and costs.firm[kind]
        if ready is not None and due and self._latest is not None and self._sure_before(place) >= place:
            at_latest = self._imagined(self._latest, place, kind, costs.levels, costs.longest, None)
        return self._quote(kind, release, ready, at_latest)

    def prepare(self, place: int) -> None:
        """Plan up to this place, so that estimates up to there are only looked up."""
        self._promise(place)
        for kind in {*self._kinds[place : place + 1], *self._bulk[:1]}:
            plan, levels, releases = self._usual_plan(kind)
            if plan is not None:
                self._feed(plan, place, levels, self._costs.usual, releases)

    def _quote(self, kind: int, release: int, ready: int | None, at_latest: int | None) -> Estimate:
        """Make an estimate of the time at which the units are free and of the worst case."""
        floor = self._occupancy
        if ready is None:
            return Estimate(None, None, None, None, floor.now)
        mean, variance = unpacked(ready)
        level = self._costs.levels[kind]
        reach = _REACH * self.coverage.width * sqrt(variance / sqrt(self._limits[level - 1]))
        first = floor.now if floor.eager else max(floor.now, release >> BITS)
        low, expected, high = (max(first, round(mean + away)) for away in (-reach, 0, reach))
        if at_latest is not None:
            low, expected, high = min(low, at_latest), min(expected, at_latest), min(high, at_latest)
        return Estimate(expected, low, high, at_latest, floor.now)

    def _kind(self, waiting: Waiting) -> int:
        """Give the number of this kind of place; what they cost is worked out once for each."""
        kind = waiting._replace(release=0) if waiting.release else waiting
        number = self._numbers.get(kind)
        if number is None:
            number = self._numbers[kind] = len(self._numbers)
            self._weigh(kind)
            if kind.bulk:
                self._bulk.append(number)
        return number

    def _weigh(self, kind: Waiting) -> None:
        level, elastic, need, _, bulk, blocked = kind
        floor, costs = self._occupancy, self._costs
        served = floor.needs is None or need in floor.needs
        usual = self.durations.expect(need, level, floor.cap(level, elastic=elastic), elastic=elastic)
        costs.levels.append(level if served else 0)
        costs.ahead.append(level if served and not bulk else 0)
        costs.longest.append(floor.span(level, elastic=elastic))
        costs.usual.append(packed(*usual))
        costs.firm.append(not (bulk or blocked))

    def _changed(self, place: int) -> None:
        self._sure = min(self._sure, place)
        for plan in (self._latest, self._expected, self._expected_bulk):
            if plan is not None and place < len(plan.ready):
                plan.truncate(place)

    def _usual_plan(self, kind: int) -> tuple[Plan | None, list[int], list[int] | None]:
        """Give the plan of what is expected for this kind, with the columns that it is fed with."""
        costs, releases = self._costs, None if self._occupancy.eager else self._releases
        if costs.ahead[kind]:
            return self._expected, costs.ahead, releases
        return self._expected_bulk, costs.levels, releases

    def _ready(self, place: int) -> int | None:
        """Give when the units of this place are expected to be free: a packed time."""
        plan, levels, releases = self._usual_plan(self._kinds[place])
        if plan is None:
            return None
        self._feed(plan, place, levels, self._costs.usual, releases)
        return plan.ready[place]

    def _sure_before(self, place: int) -> int:
        """Give how many places of the beginning of the line are due and firm, counted up to this one."""
        now = self._occupancy.now << BITS
        sure, kinds, releases, firm = self._sure, self._kinds, self._releases, self._costs.firm
        end = min(place, len(kinds))
        while sure < end and releases[sure] <= now and firm[kinds[sure]]:
            sure += 1
        self._sure = sure
        return sure

    def _promise(self, place: int) -> int | None:
        """Give the worst case, if all places up to this one are due and firm."""
        plan, costs = self._latest, self._costs
        if self._sure_before(place + 1) <= place or plan is None:
            return None
        self._feed(plan, place, costs.levels, costs.longest, None)
        return plan.ready[place]

    def _imagined(  # noqa: PLR0917 - a plan and the columns that it is fed with
        self,
        plan: Plan,
        place: int,
        kind: int,
        levels: list[int],
        spans: list[int],
        releases: list[int] | None,
    ) -> int:
        """Give when the units of a newcomer of this kind would be free."""
        if place > len(plan.ready):
            self._feed(plan, place - 1, levels, spans, releases)
        branch, begin = plan.fork(place)
        kinds = [*self._kinds[begin:place], kind]
        floors = None if releases is None else [*releases[begin:place], 0]
        branch.extend(map(levels.__getitem__, kinds), map(spans.__getitem__, kinds), floors)
        return branch.ready[-1]

    def _feed(
        self, plan: Plan, place: int, levels: list[int], spans: list[int], releases: list[int] | None
    ) -> None:
        """Plan on up to this place."""
        begin, end = len(plan.ready), place + 1
        if begin < end:
            kinds = self._kinds[begin:end]
            floors = releases and releases[begin:end]
            plan.extend(map(levels.__getitem__, kinds), map(spans.__getitem__, kinds), floors)
