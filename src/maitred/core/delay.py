"""The delay policy: whoever submitted much a short while ago waits a little longer.

The delay is the number of the submitter's counted submissions within the window, times a step. Only PUTs that
made a scheduled job count.
"""

from collections import defaultdict
from typing import NamedTuple

from maitred.core.job import Band, Order, Submitter
from maitred.core.settings import Settings


class Delay(NamedTuple):
    """How long a job waits for its release, and the count that decided it (None: the client did)."""

    length: int
    recent: int | None


class Recent:
    """When each submitter's counted submissions were made."""

    def __init__(self) -> None:
        """Begin with no submissions."""
        self.times: defaultdict[Submitter, list[int]] = defaultdict(list)

    def count(self, submitter: Submitter, settings: Settings, now: int) -> int:
        """Count the submitter's submissions within the window before now."""
        return sum(time > now - settings.window for time in self.times.get(submitter, ()))

    def delay(self, order: Order, settings: Settings, now: int) -> Delay:
        """Give the delay of an order as the queue and the client want it."""
        if order.band is not Band.SCHEDULED or not settings.per_recent or order.exempt:
            return Delay(order.delay or 0 if order.band.pooled else 0, None)
        recent = self.count(order.submitter, settings, now)
        computed = recent * settings.per_recent
        if order.delay is None or (order.policy_floor and computed > order.delay):
            return Delay(computed, recent)
        return Delay(order.delay, None)

    def note(self, order: Order, settings: Settings, now: int) -> None:
        """Count a submission that made a scheduled job, and forget those that left the window."""
        if order.band is Band.SCHEDULED and settings.per_recent and not order.exempt:
            kept = [time for time in self.times[order.submitter] if time > now - settings.window]
            self.times[order.submitter] = [*kept, now]
