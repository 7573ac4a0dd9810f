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
from maitred.core.job import Band, Place
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

    `release` is 0 for places that are always due. A `blocked` one waits for more than a slot and its units:
    for a stop to be confirmed, or for space.
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
        lane = place.lane
        release = place.release if lane.band.pooled else 0
        blocked = lane.need != lane.bare
        return cls(lane.level, elastic, lane.bare, release, lane.band is Band.BULK, blocked)


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


class _Pass(NamedTuple):
    """A plan, and the columns that it is fed with: class, time that the units are held, release."""

    plan: Plan
    levels: list[int]
    spans: list[int]
    releases: list[int] | None


class Forecast:
    """The estimates of one queue at one moment, as far as they are asked for.

    A server tells it the line once, then who joins at its end; for any other change it makes a new one.
    Places are counted from 0 in line order. Nothing is planned before it is asked for. Appending costs a few
    microseconds and changes no earlier estimate; a newcomer in the middle is imagined from the checkpoint
    before its place.

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

    def estimate(self, place: int) -> Estimate:
        """Tell when the place will be taken."""
        kind = self._kinds[place]
        ready = self._ready(place) if self._costs.levels[kind] else None
        return self._quote(kind, self._releases[place], ready, self._promise(place))

    def imagine(self, place: int, waiting: Waiting) -> Estimate:
        """Tell when a newcomer would be taken that stood before this place; the line stays as it is."""
        kind, costs, release = self._kind(waiting), self._costs, waiting.release << BITS
        usual, latest = self._usual(kind), self._worst()
        ready = at_latest = None
        if costs.levels[kind] and usual is not None:
            ready = self._imagined(usual, place, kind)
        due = release <= self._occupancy.now << BITS and costs.firm[kind]
        if ready is not None and due and latest is not None and self._sure_before(place) >= place:
            at_latest = self._imagined(latest, place, kind)
        return self._quote(kind, release, ready, at_latest)

    def prepare(self, place: int) -> None:
        """Plan up to this place, so that estimates up to there are only looked up."""
        self._promise(place)
        for kind in {*self._kinds[place : place + 1], *self._bulk[:1]}:
            self._feed(self._usual(kind), place)

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

    def _usual(self, kind: int) -> "_Pass | None":
        """Give the pass of what is expected for this kind."""
        costs, releases = self._costs, None if self._occupancy.eager else self._releases
        ahead = bool(costs.ahead[kind])
        plan = self._expected if ahead else self._expected_bulk
        if plan is None:
            return None
        return _Pass(plan, costs.ahead if ahead else costs.levels, costs.usual, releases)

    def _worst(self) -> "_Pass | None":
        """Give the pass of the worst case."""
        if self._latest is None:
            return None
        return _Pass(self._latest, self._costs.levels, self._costs.longest, None)

    def _ready(self, place: int) -> int | None:
        """Give when the units of this place are expected to be free: a packed time."""
        return self._feed(self._usual(self._kinds[place]), place)

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
        if self._sure_before(place + 1) <= place:
            return None
        return self._feed(self._worst(), place)

    def _imagined(self, each: "_Pass", place: int, kind: int) -> int:
        """Give when the units of a newcomer of this kind would be free."""
        if place > len(each.plan.ready):
            self._feed(each, place - 1)
        branch, begin = each.plan.fork(place)
        kinds = [*self._kinds[begin:place], kind]
        floors = None if each.releases is None else [*each.releases[begin:place], 0]
        branch.extend(map(each.levels.__getitem__, kinds), map(each.spans.__getitem__, kinds), floors)
        return branch.ready[-1]

    def _feed(self, each: "_Pass | None", place: int) -> int | None:
        """Plan on up to this place; give when its units are free."""
        if each is None:
            return None
        plan, levels, spans, releases = each
        begin, end = len(plan.ready), place + 1
        if begin < end:
            kinds = self._kinds[begin:end]
            floors = releases and releases[begin:end]
            plan.extend(map(levels.__getitem__, kinds), map(spans.__getitem__, kinds), floors)
        return plan.ready[place]
