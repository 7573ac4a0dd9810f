"""How long jobs take, as learned from those that ran, and how well the ranges quoted from it hold.

For each need and class, elastic jobs apart, observed durations fall into buckets of half an octave. A job
that was stopped at its cap, cut or cancelled did not take that long: it would have run on. It is *censored*:
it counts as one that lived at least until then (Kaplan and Meier's estimator), so that a queue full of jobs
that hit their cap is not taken for one of jobs that end there by themselves. Old observations fade away;
while there are few, a guess made from the bound alone stands in.
"""

from math import exp, sqrt
from typing import NamedTuple

# An observation weighs 1/e of its first weight after so many later ones of its kind.
MEMORY = 256
# How many kinds of jobs are remembered; the one that was not seen for longest is forgotten first.
KINDS = 1024

_GROWTH = 1 + 1 / MEMORY
_HEAVY = 1e100
_SHORTEST = 10
_BUCKETS = 64


class Expected(NamedTuple):
    """What a duration will be: its mean in microseconds, and its variance in their square."""

    mean: float
    variance: float


def _bucket(elapsed: int) -> int:
    """Find the bucket of a duration: two to an octave, all below a millisecond in the first."""
    bits = elapsed.bit_length()
    if bits <= _SHORTEST:
        return 0
    half = elapsed >> (bits - 2) & 1
    return min(2 * (bits - _SHORTEST) - 1 + half, _BUCKETS - 1)


class _Sample:
    """The observations of one kind of job: those that ended and those that were cut, by bucket."""

    __slots__ = ("cut", "ended", "squares", "sums", "weight")

    def __init__(self) -> None:
        self.weight = 1.0
        self.ended = [0.0] * _BUCKETS
        self.sums = [0.0] * _BUCKETS
        self.squares = [0.0] * _BUCKETS
        self.cut = [0.0] * _BUCKETS

    def note(self, elapsed: int, *, censored: bool) -> None:
        """Count one observation; newer ones weigh more, which is how the older ones fade."""
        self.weight *= _GROWTH
        if self.weight > _HEAVY:
            self._lighten()
        bucket = _bucket(elapsed)
        if censored:
            self.cut[bucket] += self.weight
            return
        self.ended[bucket] += self.weight
        self.sums[bucket] += self.weight * elapsed
        self.squares[bucket] += self.weight * elapsed * elapsed

    def _lighten(self) -> None:
        for column in (self.ended, self.sums, self.squares, self.cut):
            column[:] = [value / self.weight for value in column]
        self.weight = 1.0

    def moments(self, bound: int, elapsed: int) -> tuple[float, float, float]:
        """Give mean and mean square of min(d, bound) given d > elapsed, and how many observations tell so."""
        first = _bucket(elapsed)
        risk = sum(self.ended[first:]) + sum(self.cut[first:])
        seen = risk / self.weight
        alive, mean, square = 1.0, 0.0, 0.0
        for bucket in range(first, _BUCKETS):
            ended = self.ended[bucket]
            if ended:
                usual = self.sums[bucket] / ended
                spread = max(0.0, self.squares[bucket] / ended - usual * usual)
                usual = max(usual, elapsed + sqrt(spread))
                if usual >= bound:
                    break
                share = alive * min(1.0, ended / risk)
                alive -= share
                mean += share * usual
                square += share * (usual * usual + spread)
            risk -= ended + self.cut[bucket]
            if risk <= self.weight * 1e-9:
                break
        return mean + alive * bound, square + alive * bound * bound, seen


class Durations:
    """The durations learned per need, class and elasticity, in bounded memory."""

    def __init__(self) -> None:
        """Begin with nothing learned."""
        self._samples: dict[tuple[str, int, bool], _Sample] = {}

    def note(
        self, need: str, level: int, elapsed: int, *, elastic: bool = False, censored: bool = False
    ) -> None:
        """Learn from a run that took `elapsed`; `censored` if it was stopped and would have gone on.

        An elastic job ranks as the fastest class, level 1, however long it ran.
        """
        key = (need, level, elastic)
        sample = self._samples.pop(key, None) or _Sample()
        self._samples[key] = sample
        sample.note(max(0, elapsed), censored=censored)
        if len(self._samples) > KINDS:
            del self._samples[next(iter(self._samples))]

    def expect(
        self, need: str, level: int, bound: int, *, elastic: bool = False, elapsed: int = 0
    ) -> Expected:
        """Tell what a run will take that is stopped at `bound` at the latest and has run for `elapsed`.

        Always between the two. With nothing learned every duration between them is as likely as another;
        this guess counts for half beside one observation, for a tenth beside three.
        """
        if elapsed >= bound:
            return Expected(bound, 0.0)
        mean = (elapsed + bound) / 2
        square = (elapsed * elapsed + elapsed * bound + bound * bound) / 3
        sample = self._samples.get((need, level, elastic))
        if sample is not None:
            learned_mean, learned_square, seen = sample.moments(bound, elapsed)
            guess = 1 / (1 + seen * seen)
            mean = guess * mean + (1 - guess) * learned_mean
            square = guess * square + (1 - guess) * learned_square
        mean = min(max(mean, elapsed), bound)
        # Nothing between two bounds varies more than this; what was learned in coarse steps might say so.
        most = (mean - elapsed) * (bound - mean)
        return Expected(mean, max(0.0, min(square - mean * mean, most)))


class Coverage:
    """Of the ranges quoted, how many held the real start; and how much wider to quote the next ones.

    `width` follows what happened: it grows with each start outside its range and shrinks a little with each
    inside, and so settles where `aim` of them are inside.
    """

    def __init__(self, aim: float = 0.8) -> None:
        """Begin with no range quoted."""
        self.aim = aim
        self.early = 0
        self.held = 0
        self.late = 0
        self.width = 1.0

    @property
    def quoted(self) -> int:
        """How many ranges were compared with a real start."""
        return self.early + self.held + self.late

    @property
    def share(self) -> float | None:
        """The part of the ranges that held; None before the first."""
        return self.held / self.quoted if self.quoted else None

    def note(self, low: int, high: int, start: int) -> None:
        """Compare a range that was quoted with the start that came."""
        inside = low <= start <= high
        self.early += start < low
        self.held += inside
        self.late += start > high
        step = -(1 - self.aim) if inside else self.aim
        self.width = min(4.0, max(0.25, self.width * exp(step / 16)))
