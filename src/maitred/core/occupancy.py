"""What the Floor holds at a moment, and from that when its units come free.

There are two answers. In the worst case a job with a duration of its own runs to the end of it, counted from
the lease, and then takes a stop; an elastic one is sure of the fastest cap only, and an interactive one of
nothing. As expected, each ends when jobs of its kind usually do, with a variance. Such a time is one whole
number: the mean in microseconds above `BITS` bits of variance in square milliseconds, so that times add up
and compare as they are.
"""

from collections.abc import Iterable, Sequence
from math import exp, log, sqrt
from statistics import NormalDist
from typing import NamedTuple

from maitred.core.classes import DurationClass, limits
from maitred.core.durations import Durations, Expected
from maitred.core.floor import Kind

# Room for the summed variance of a million jobs of a month each.
BITS = 96


def packed(mean: float, variance: float = 0) -> int:
    """Make one number of a mean in microseconds and a variance in their square."""
    return (round(mean) << BITS) + round(variance / 1_000_000)


def unpacked(time: int) -> Expected:
    """Read what `packed` wrote, or a sum of such numbers."""
    return Expected(time >> BITS, (time & ((1 << BITS) - 1)) * 1_000_000)


class Running(NamedTuple):
    """A running job: since when, the class whose units it holds, and how long it may run from its start on.

    `stopping` is when its stop was asked for, None if it was not. A job of a `draining` worker holds no slot
    of the floor, but the units of its higher levels.
    """

    start: int
    level: int
    granted: int
    kind: Kind = Kind.SPECIFIC
    need: str = ""
    stopping: int | None = None
    draining: bool = False


class Occupancy(NamedTuple):
    """The Floor of one queue at a moment, after the cycle: all that an estimate depends on but the line.

    `slots` are those of the live workers that are not draining. A stop is confirmed within `kill_after` of
    the moment at which it is asked for; a timer that asks for it at a time limit may be late, by `slack`.
    `needs` are those that any live worker serves, None for all; `alike` tells whether all serve the same.
    """

    now: int
    classes: Sequence[DurationClass]
    slots: int
    running: Sequence[Running] = ()
    kill_after: int = 0
    slack: int = 0
    needs: frozenset[str] | None = None
    alike: bool = True
    paused: bool = False
    stages: int = 1
    eager: bool = False

    @property
    def open(self) -> bool:
        """Tell whether anybody can start at all."""
        return self.slots > 0 and not self.paused

    @property
    def binding(self) -> bool:
        """Tell whether a promise can be made.

        Not while a draining worker's job holds a higher level: its end frees no slot, so whoever waited for
        that level may find the slots taken by those who overtook.
        """
        drained = any(job.draining and job.level > 1 for job in self.running)
        return self.open and self.stages == 1 and self.alike and not drained

    @property
    def limits(self) -> list[int]:
        """The number of units of each level."""
        return limits(self.classes, self.slots)

    def cap(self, level: int, *, elastic: bool) -> int:
        """Give how long a job in line may keep its units: an elastic one no longer than the fastest."""
        return self.classes[0 if elastic else level - 1].cap

    def span(self, level: int, *, elastic: bool) -> int:
        """Give how long a job in line holds its units in the worst case."""
        return self.cap(level, elastic=elastic) + self.slack + self.kill_after

    def latest(self) -> list[list[int]]:
        """Give, per level, the times at which the units come free in the worst case."""
        return self._units(self.now, [self._latest_end(job) for job in self.running])

    def expected(self, durations: Durations) -> list[list[int]]:
        """Give, per level, the packed times at which the units are expected to come free."""
        ends = [self._expected_end(job, durations) for job in self.running]
        return self._units(packed(self.now), [packed(*end) for end in self._spread(ends)])

    def _bound(self, job: Running) -> int:
        sure = {Kind.SPECIFIC: job.granted, Kind.ELASTIC: min(job.granted, self.classes[0].cap)}
        return job.start + sure.get(job.kind, 0)

    def _latest_end(self, job: Running) -> int:
        if job.stopping is not None:
            return max(self.now, job.stopping + self.kill_after)
        late = 0 if job.kind is Kind.INTERACTIVE else self.slack
        return max(self.now, self._bound(job) + late) + self.kill_after

    def _expected_end(self, job: Running, durations: Durations) -> Expected:
        """Give the mean and variance of its end; a stop takes any time up to `kill_after`."""
        bound = self._bound(job)
        if job.stopping is not None or bound <= self.now:
            return Expected(self.now + self.kill_after / 2, self.kill_after**2 / 12)
        elastic = job.kind is Kind.ELASTIC
        level = 1 if elastic else job.level
        elapsed = max(0, self.now - job.start)
        taken = durations.expect(job.need, level, bound - job.start, elastic=elastic, elapsed=elapsed)
        return Expected(job.start + taken.mean, taken.variance)

    def _spread(self, ends: list[Expected]) -> list[Expected]:
        """Set the ends of each class apart as if drawn by chance: of several equal jobs one ends early."""
        spread = ends.copy()
        for level in {job.level for job in self.running}:
            peers = [place for place, job in enumerate(self.running) if job.level == level]
            peers.sort(key=lambda place: ends[place].mean)
            for rank, place in enumerate(peers):
                mean, variance = ends[place]
                rest = mean - self.now
                if len(peers) > 1 and rest > 0:
                    shape = log(1 + variance / rest**2)
                    away = NormalDist().inv_cdf((rank + 0.5) / len(peers))
                    rest *= exp(away * sqrt(shape) - shape / 2)
                spread[place] = Expected(self.now + rest, variance)
        return spread

    def _holds(self, job: Running, level: int) -> bool:
        """Tell whether a unit of this level waits for its end.

        An elastic job that holds more than the fastest class, as `squeeze` lets it, gives the rest up as soon
        as it is asked to; only when overdue it ends by that.
        """
        if level == 1:
            return not job.draining
        lowered = job.kind is Kind.ELASTIC and job.stopping is None and self._bound(job) > self.now
        return job.level >= level and not lowered

    def _units(self, now: int, ends: Iterable[int]) -> list[list[int]]:
        """Fill each level with the ends of those who hold it; over its limit, the latest decide."""
        held = list(zip(self.running, ends, strict=True))
        units = []
        for level, limit in enumerate(self.limits, 1):
            taken = sorted(end for job, end in held if self._holds(job, level))
            units.append([now] * (limit - len(taken)) + taken[-limit:])
        return units
