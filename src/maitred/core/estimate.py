"""When a waiting job will start: at the latest, and as expected.

The plan of `plan.py` is made twice from what the Floor holds at a moment (an `Occupancy`) and from the places
in line order. With every job running to its cap and every stop taking its time, it gives `at_latest`: a
promise to a place, which never moves later and is never broken while no worker leaves and nothing comes in
before the place. With learned durations it gives `expected` and a range.

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


class Forecast:
    """The estimates of one queue, kept while its line and its Floor change.

    A server tells it the line once, then each change of it, and every so often what the Floor holds (`look`).
    Places are counted from 0 in line order. Nothing is planned before it is asked for, and a change costs
    only the part of the line behind it, from the checkpoint before it on; appending costs a few microseconds
    and changes no earlier estimate.

    `at_latest` is None for a place that is not due, in bulk, or behind such a one; for a blocked place and
    those behind it; and wherever the Occupancy is not `binding`. All parts are None while the queue is paused
    or has no live slot, and for a place whose need nobody serves; such a place holds up nobody.
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
        self._numbers: dict[tuple[int, bool, str, bool], int] = {}
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
        self._levels: list[int] = []
        self._longest: list[int] = []
        self._usual: list[int] = []
        for level, elastic, need, _ in self._numbers:
            self._weigh(level, need, elastic=elastic)
        self._firm = [not weak for _, _, _, weak in self._numbers]
        self._sure = 0
        self._latest = Plan(occupancy.latest()) if occupancy.binding else None
        self._expected = Plan(occupancy.expected(self.durations)) if occupancy.open else None

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
        now = self._occupancy.now
        plan = self._expected
        kind = self._kinds[place]
        level = self._levels[kind]
        if plan is None or not level:
            return Estimate(None, None, None, None, now)
        at_latest = self._promise(place)
        self._feed(plan, place, self._usual, self._releases if not self._occupancy.eager else None)
        mean, variance = unpacked(plan.ready[place])
        first = now if self._occupancy.eager else max(now, self._releases[place] >> BITS)
        reach = round(_REACH * self.coverage.width * sqrt(variance / sqrt(self._limits[level - 1])))
        last = at_latest if at_latest is not None else max(first, round(mean) + reach)
        expected, low, high = (min(last, max(first, round(mean) + away)) for away in (0, -reach, reach))
        return Estimate(expected, low, high, at_latest, now)

    def _kind(self, waiting: Waiting) -> int:
        """Give the number of this kind of place; what they cost is worked out once for each."""
        key = (waiting.level, waiting.elastic, waiting.need, waiting.bulk or waiting.blocked)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._numbers)
            self._weigh(waiting.level, waiting.need, elastic=waiting.elastic)
            self._firm.append(not key[3])
        return number

    def _weigh(self, level: int, need: str, *, elastic: bool) -> None:
        floor = self._occupancy
        served = floor.needs is None or need in floor.needs
        usual = self.durations.expect(need, level, floor.cap(level, elastic=elastic), elastic=elastic)
        self._levels.append(level if served else 0)
        self._longest.append(floor.span(level, elastic=elastic))
        self._usual.append(packed(*usual))

    def _changed(self, place: int) -> None:
        self._sure = min(self._sure, place)
        for plan in (self._latest, self._expected):
            if plan is not None and place < len(plan.ready):
                plan.truncate(place)

    def _promise(self, place: int) -> int | None:
        """Give the worst case, if all places up to this one are due and firm."""
        plan = self._latest
        now = self._occupancy.now << BITS
        while (
            self._sure <= place and self._releases[self._sure] <= now and self._firm[self._kinds[self._sure]]
        ):
            self._sure += 1
        if plan is None or place >= self._sure:
            return None
        self._feed(plan, place, self._longest, None)
        return plan.ready[place]

    def _feed(self, plan: Plan, place: int, spans: list[int], releases: list[int] | None) -> None:
        begin, end = len(plan.ready), place + 1
        if begin < end:
            kinds = self._kinds[begin:end]
            levels = map(self._levels.__getitem__, kinds)
            floors = releases and releases[begin:end]
            plan.extend(levels, map(spans.__getitem__, kinds), floors)
