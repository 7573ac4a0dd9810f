"""An outlook: the starts foreseen at one moment, for a line that is copied then.

It is planned as far as it is asked for, or bit by bit in the background. Whoever joins at the end later is
appended, which moves nobody. Whoever joins in the middle is told what would be, had it stood there, until
there is a newer outlook.

An outlook is `stale` once anything else changed. What it promises holds all the same, to newcomers too, since
it has all who stand before them; unless it is `broken`: somebody came in before its end, or started or left
in a way that it could not count with.
"""

from collections import deque
from itertools import islice

from maitred.core.durations import Coverage, Durations
from maitred.core.estimate import Estimate, Forecast, Waiting
from maitred.core.occupancy import Occupancy
from maitred.service.lanes import Lanes, edge_of


class Outlook:
    """The estimates of a line and a floor at one moment; with `most`, of the first places only."""

    def __init__(
        self,
        lanes: Lanes,
        occupancy: Occupancy,
        durations: Durations,
        coverage: Coverage,
        most: int | None = None,
    ) -> None:
        self.as_of = occupancy.now
        self.stale = False
        self.broken = False
        self._most = most
        self._edge = edge_of(occupancy.now)
        self._lanes = lanes.copy(most)
        self._length = len(self._lanes) if most is None else min(most, len(self._lanes))
        self._coming = islice(self._lanes.in_order(self._edge), most)
        self._late: deque[Waiting] = deque()
        self._forecast = Forecast(occupancy, (), durations, coverage)

    def __len__(self) -> int:
        """Tell how many places it foresees."""
        return self._length

    def has(self, name: str, order: bytes) -> bool:
        """Tell whether this place stood in line when it was made, or joined at the end since then."""
        return self._lanes.has(name, order)

    @property
    def done(self) -> bool:
        """Tell whether all of it is planned."""
        return len(self._forecast) == self._length

    def plan(self, count: int) -> None:
        """Plan so many places more."""
        self._merge(len(self._forecast) + count)
        if len(self._forecast):
            self._forecast.prepare(len(self._forecast) - 1)

    def add(self, name: str, order: bytes, now: int) -> None:
        """Hear of a place that joined; if it is not at the end, the outlook is broken from now on."""
        if self.broken or self._lanes.has(name, order) or not self._catch_up(now):
            return
        before = self._lanes.before(name, order, self._edge)
        if before >= (self._most or before + 1):
            return
        if before < self._length:
            self.stale = self.broken = True
            return
        lane = self._lanes[name]
        lane.add(order)
        self._late.append(self._seen(name, order))
        self._length += 1

    def estimate(self, name: str, order: bytes, now: int) -> Estimate | None:
        """Tell when a place will be taken; None if it lies beyond what is foreseen."""
        known = self._lanes.has(name, order)
        if not known:
            self._catch_up(now)
        place = self._lanes.before(name, order, self._edge)
        if place >= (self._most or place + 1):
            return None
        if place > self._length or (known and place >= self._length):
            return None
        self._merge(place + 1)
        if known:
            return self._forecast.estimate(place)
        estimate = self._forecast.imagine(place, self._seen(name, order))
        return estimate._replace(at_latest=None) if self.broken else estimate

    def _catch_up(self, now: int) -> bool:
        """Let time pass for newcomers, who are released after the outlook was made.

        If others fall due by that, the order of the line is another, and the outlook is broken.
        """
        edge = edge_of(now)
        if edge > self._edge:
            if not self._lanes.same_dues(self._edge, edge):
                self.stale = self.broken = True
                return False
            self._edge = edge
        return True

    def _seen(self, name: str, order: bytes) -> Waiting:
        lane = self._lanes[name]
        if lane.is_due(order, self._edge):
            return lane.waiting
        return lane.waiting._replace(release=int.from_bytes(order[:8], "big"))

    def _merge(self, end: int) -> None:
        """Bring the first places of the line into the forecast, up to this one."""
        missing = min(end, self._length) - len(self._forecast)
        if missing > 0:
            self._forecast.extend(islice(self._coming, missing))
        while self._late and len(self._forecast) < min(end, self._length):
            self._forecast.append(self._late.popleft())
