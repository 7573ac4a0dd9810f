"""The line as a server keeps it for estimates: for each lane, the order of its places and nothing else.

An order is 16 bytes that sort a place within its lane, as the events tell it. In the pooled bands, scheduled
and bulk, the first 8 are its release. The order of the whole line is that of `Place.rank`: what is due by
band, priority and order, then what is not by release and arrival.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import chain, repeat
from operator import itemgetter

from maitred.core.estimate import Waiting
from maitred.core.events import TOP, order_of
from maitred.core.job import Band, Lane, Place, View

_LAST = b"\xff" * 8


def edge_of(now: int) -> bytes:
    """Give an order after all that are due now, and before all others."""
    return now.to_bytes(8, "big") + _LAST


def standing(view: View) -> tuple[str, bytes]:
    """Give the lane and the order of the place that a waiting job would take now."""
    job = view.job
    arrival = job.arrival if view.nonce is None else view.nonce
    lane = job.lane
    place = Place(lane, view.release or 0, arrival, job.submitter, job.record)
    return str(lane), order_of(place)


def came_at(band: Band, order: bytes) -> int:
    """Give since when a place could be taken: its release, or its arrival in a band that is always due."""
    first = int.from_bytes(order[:8], "big")
    return TOP - first if band is Band.FRONT else first


class LaneOrders:
    """The places of one lane, in order, and what the planner has to know of them."""

    __slots__ = ("band", "orders", "rank", "waiting")

    def __init__(self, name: str, orders: Iterable[bytes] = ()) -> None:
        lane = Lane.read(name)
        self.band = lane.band
        self.rank = (lane.band, lane.priority)
        self.orders = list(orders)
        # Whether a job is elastic is not told; in the fastest class both have the same cap.
        self.waiting = Waiting(
            lane.level,
            lane.level == 1,
            lane.bare,
            bulk=lane.band is Band.BULK,
            blocked=lane.need != lane.bare,
        )

    def copy(self, most: int | None) -> "LaneOrders":
        """Copy the lane, or its first places."""
        other = LaneOrders.__new__(LaneOrders)
        other.band, other.rank, other.waiting = self.band, self.rank, self.waiting
        other.orders = self.orders[:most]
        return other

    def due(self, edge: bytes) -> int:
        """Count the places that are due at the time of this edge."""
        return bisect_right(self.orders, edge) if self.band.pooled else len(self.orders)

    def is_due(self, order: bytes, edge: bytes) -> bool:
        """Tell whether a place of this lane is due."""
        return not self.band.pooled or order <= edge

    def has(self, order: bytes) -> bool:
        """Tell whether a place stands here."""
        at = bisect_left(self.orders, order)
        return at < len(self.orders) and self.orders[at] == order

    def add(self, order: bytes) -> None:
        """Let a place stand here, unless it does."""
        if not self.orders or order > self.orders[-1]:
            self.orders.append(order)
        elif not self.has(order):
            insort(self.orders, order)

    def remove(self, order: bytes) -> None:
        """Take a place out, if it is here."""
        if self.has(order):
            del self.orders[bisect_left(self.orders, order)]

    def take(self, through: bytes) -> list[bytes]:
        """Take out all places up to this one; give them."""
        end = bisect_right(self.orders, through)
        taken = self.orders[:end]
        del self.orders[:end]
        return taken


class Lanes:
    """All lanes of one queue."""

    def __init__(self) -> None:
        """Begin with nobody in line."""
        self._lanes: dict[str, LaneOrders] = {}

    def __len__(self) -> int:
        return sum(len(lane.orders) for lane in self._lanes.values())

    def __getitem__(self, name: str) -> LaneOrders:
        """Give a lane; one that nobody spoke of is empty."""
        lane = self._lanes.get(name)
        if lane is None:
            lane = self._lanes[name] = LaneOrders(name)
        return lane

    def names(self) -> dict[str, list[bytes]]:
        """Give the order of the places by lane, without lanes that are empty."""
        return {name: lane.orders for name, lane in self._lanes.items() if lane.orders}

    def copy(self, most: int | None = None) -> "Lanes":
        """Copy the line; with `most`, only so many places of each lane, which hold the first of the line."""
        other = Lanes()
        other._lanes = {name: lane.copy(most) for name, lane in self._lanes.items() if lane.orders}
        return other

    def has(self, name: str, order: bytes) -> bool:
        """Tell whether this place stands in line."""
        lane = self._lanes.get(name)
        return lane is not None and lane.has(order)

    def same_dues(self, first: bytes, second: bytes) -> bool:
        """Tell whether the same places are due at two times."""
        return all(lane.due(first) == lane.due(second) for lane in self._lanes.values())

    def before(self, name: str, order: bytes, edge: bytes) -> int:
        """Count the places that stand before this one in line, whether it is there or not."""
        mine = self[name]
        count = 0
        if mine.is_due(order, edge):
            for lane in self._lanes.values():
                if lane.rank < mine.rank:
                    count += lane.due(edge)
                elif lane.rank == mine.rank:
                    count += min(lane.due(edge), bisect_left(lane.orders, order))
            return count
        for lane in self._lanes.values():
            count += bisect_left(lane.orders, order) if lane.band.pooled else len(lane.orders)
        return count

    def in_order(self, edge: bytes) -> Iterator[Waiting]:
        """Go through the line as the planner sees it. Later changes of the lanes are not seen."""
        groups: dict[tuple[int, int], list[tuple[Waiting, list[bytes]]]] = {}
        later: list[tuple[Waiting, list[bytes]]] = []
        for lane in self._lanes.values():
            due = lane.due(edge)
            if due:
                groups.setdefault(lane.rank, []).append((lane.waiting, lane.orders[:due]))
            if due < len(lane.orders):
                later.append((lane.waiting, lane.orders[due:]))
        return chain(*(_due(groups[rank]) for rank in sorted(groups)), _not_due(later))


def _merged(lanes: list[tuple[Waiting, list[bytes]]]) -> Iterator[tuple[bytes, int]]:
    """Merge the orders of lanes, each with the number of its lane."""
    if len(lanes) == 1:
        return zip(lanes[0][1], repeat(0))
    return merge(*(zip(orders, repeat(number)) for number, (_, orders) in enumerate(lanes)))


def _due(lanes: list[tuple[Waiting, list[bytes]]]) -> Iterator[Waiting]:
    if len(lanes) == 1:
        [(waiting, orders)] = lanes
        return repeat(waiting, len(orders))
    kinds = [waiting for waiting, _ in lanes]
    return map(kinds.__getitem__, map(itemgetter(1), _merged(lanes)))


def _not_due(lanes: list[tuple[Waiting, list[bytes]]]) -> Iterator[Waiting]:
    kinds = [waiting for waiting, _ in lanes]
    for order, number in _merged(lanes) if lanes else ():
        yield kinds[number]._replace(release=int.from_bytes(order[:8], "big"))
