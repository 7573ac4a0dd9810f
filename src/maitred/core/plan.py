"""The pass behind every estimate: jobs in line order, each put on the units that it would really get.

A plan keeps for each level the times at which its units come free. A job of class c starts at the latest,
over its levels 1..c, of each level's earliest free time; then on each of them the *latest* free time not
after that start becomes its end. The earlier ones are for those who overtake. A running job holds a unit on
every level up to its class, so a unit of a higher level never comes free without one of each lower level, and
a job's start depends only on the jobs before it in line: appending one moves nobody.

Times and spans may be any whole numbers that add up and compare, so one plan serves the worst case, in plain
microseconds, and another the learned durations, in numbers that also carry a variance.
"""

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from itertools import islice, repeat

# How many places lie between two checkpoints, at least.
STEP = 512


class Plan:
    """The times at which the units come free, after the jobs appended so far.

    `ready` tells for each place when all its units are free. A place that is not due yet starts then or at
    its release, whichever is later.
    """

    def __init__(self, units: Sequence[Iterable[int]]) -> None:
        """Begin with the free times of each level's units; every level has at least one."""
        self.ready: list[int] = []
        self._units = [sorted(level) for level in units]
        self._step = max(STEP, 2 * len(self._units[0]))
        self._checkpoints = [[level.copy() for level in self._units]]

    def append(self, level: int, span: int, release: int = 0) -> int:
        """Plan one more job, which holds its units for `span`; answer its start. No earlier one moves."""
        self.extend((level,), (span,), (release,))
        return max(self.ready[-1], release)

    def extend(
        self, levels: Iterable[int], spans: Iterable[int], releases: Iterable[int] | None = None
    ) -> None:
        """Plan many jobs in line order. One of level 0 never starts: it takes no unit, its time is 0."""
        jobs = zip(levels, spans, repeat(0) if releases is None else releases, strict=False)
        while True:
            room = self._step - len(self.ready) % self._step
            before = len(self.ready)
            self._seat(islice(jobs, room))
            if len(self.ready) - before < room:
                return
            self._checkpoints.append([level.copy() for level in self._units])

    def fork(self, place: int) -> tuple["Plan", int]:
        """Give a plan that stands where this one stood before `place`, and the place that it goes on from.

        That is the checkpoint before, so that up to a step of places has to be planned again.
        """
        kept = min(place, len(self.ready)) // self._step
        return Plan(self._checkpoints[kept]), kept * self._step

    def _seat(self, jobs: Iterable[tuple[int, int, int]]) -> None:
        slots = self._units[0]
        prefixes = [self._units[:level] for level in range(len(self._units) + 1)]
        ready = self.ready.append
        for level, span, release in jobs:
            if level == 1:
                start = slots[0]
                ready(start)
                if release <= start:
                    del slots[0]
                    insort(slots, start + span)
                    continue
            else:
                start = 0
                for units in prefixes[level]:
                    if units[0] > start:  # noqa: PLR1730 - a call for each would make the pass half as fast
                        start = units[0]
                ready(start)
            if release > start:  # noqa: PLR1730 - as above
                start = release
            end = start + span
            for units in prefixes[level]:
                last = bisect_right(units, start) - 1
                del units[last]
                insort(units, end, last)
