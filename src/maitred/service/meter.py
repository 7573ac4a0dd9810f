"""The meter: how often each key calls. It may call some seconds' worth at once, and then at its rate.

Each server counts for itself.
"""

import math
import time
from collections.abc import Callable

from maitred.errors import TooOften

# How many seconds' worth of calls may come at once.
BURST = 5.0
MOST_KEYS = 10_000


class Meter:
    """Counts the calls of each key against so many a second, the `rate`; None lets all pass."""

    def __init__(self, rate: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self._clock = clock
        # For each key, until when what it has called so far is paid.
        self._paid: dict[str, float] = {}

    def count(self, key: str) -> None:
        """Count a call; `TooOften` if there were too many, and then it does not count."""
        if self.rate is None:
            return
        now = self._clock()
        paid = max(now, self._paid.get(key, now)) + 1 / self.rate
        if paid > now + BURST:
            raise TooOften(math.ceil(paid - now - BURST))
        if len(self._paid) >= MOST_KEYS:
            self._paid = {id: until for id, until in self._paid.items() if until > now}
        self._paid[key] = paid
