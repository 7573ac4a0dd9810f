"""What a server learns from the runs and starts that it hears of: durations, waits, and how its ranges held.

Nothing of it is stored. A server that starts reads the last ended jobs once, and then listens.
"""

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from maitred.core.durations import Coverage, Durations
from maitred.core.estimate import Estimate
from maitred.core.floor import Kind
from maitred.core.job import Band, View
from maitred.core.occupancy import Running
from maitred.core.settings import SECOND

if TYPE_CHECKING:
    from maitred.service.metrics.tally import Tally

# How many waits the statistics are made of, and how many quoted ranges are remembered until the start comes.
WAITS = 1_000
QUOTES = 10_000

# How a run ends by itself. All others were stopped, or lost: they would have gone on.
_BY_ITSELF = frozenset({"", "error", "exit", "command", "script", "result"})


class Experience:
    """What was learned of one queue; a `tally` counts waits, and how quotes held, for good."""

    def __init__(self, tally: "Tally | None" = None) -> None:
        """Begin with nothing learned."""
        self.durations = Durations()
        self.coverage = Coverage()
        self._waits: deque[tuple[int, int]] = deque(maxlen=WAITS)
        self._quotes: dict[tuple[str, bytes], tuple[int, int, int]] = {}
        self._tally = tally

    def read_history(self, ended: Iterable[View]) -> None:
        """Learn from jobs that have ended, last first."""
        for view in reversed(list(ended)):
            job = view.job
            if job.band is Band.INTERACTIVE:
                continue
            for run in job.timeline:
                kind = Kind.ELASTIC if job.elastic else Kind.SPECIFIC
                ran = Running(run.start, job.level, 0, kind, job.need)
                self.ran(ran, run.end, run.code)
            if len(job.timeline) == 1 and job.band.pooled:
                self.waited(job.release, job.timeline[0].start)

    def ran(self, run: Running, end: int, code: str | None) -> None:
        """Learn from a run that has ended with this code; None if its job goes on."""
        if run.kind is Kind.INTERACTIVE:
            return
        elastic = run.kind is Kind.ELASTIC
        level = 1 if elastic else run.level
        censored = run.stopping is not None or code not in _BY_ITSELF
        kinds = {elastic, level == 1}  # a lane does not tell the elastic ones of the fastest class apart
        for each in kinds:
            self.durations.note(run.need, level, end - run.start, elastic=each, censored=censored)

    def waited(self, since: int, start: int, level: int | None = None) -> None:
        """Count the wait of a job from its release to its start; its class is None if that is history."""
        wait = max(0, start - since)
        self._waits.append((start, wait))
        if self._tally and level is not None:
            self._tally.waited(level, wait)

    def quoted(self, place: tuple[str, bytes], estimate: Estimate) -> None:
        """Remember the first range that was told of a place."""
        expected, low, high, *_ = estimate
        if expected is None or low is None or high is None or place in self._quotes:
            return
        self._quotes[place] = (low, expected, high)
        if len(self._quotes) > QUOTES:
            del self._quotes[next(iter(self._quotes))]

    def taken(self, place: tuple[str, bytes], start: int) -> None:
        """Compare what was told of a place with its start."""
        if quote := self._quotes.pop(place, None):
            low, _, high = quote
            self.coverage.note(low, high, start)
            if self._tally:
                self._tally.compared(*quote, start)

    def gone(self, place: tuple[str, bytes]) -> None:
        """Forget what was told of a place that nobody will take."""
        self._quotes.pop(place, None)

    def forget_quotes(self) -> None:
        """Forget all that was told: the starts that came meanwhile are not known."""
        self._quotes.clear()

    def waits(self) -> dict[str, Any] | None:
        """Give the statistics of the last waits; None before the first."""
        if not self._waits:
            return None
        waits = sorted(wait / SECOND for _, wait in self._waits)
        window = (self._waits[-1][0] - self._waits[0][0]) / SECOND
        coverage = self.coverage
        return {
            "count": len(waits),
            "mean": sum(waits) / len(waits),
            **{f"p{part}": waits[min(len(waits) - 1, len(waits) * part // 100)] for part in (50, 90, 99)},
            "window": max(0.0, window),
            "estimate": {"quoted": coverage.quoted, "covered": coverage.held},
        }
