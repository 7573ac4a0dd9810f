"""The store's time, as far as a worker can be sure of it.

A job's limit counts from its start, and starts are told in the store's time. Every answer says what time it
was when the store wrote it; when it is read that moment is past, by the time that it was on its way. So what
the worker knows is a lower bound, which goes on with the worker's own clock: no limit seems reached too
early, and none too late by more than the quickest answer was on its way.
"""

import time
from collections.abc import Callable

from maitred.core.settings import SECOND

TRUSTED_FOR = 30.0
STEP = 1 * SECOND


class StoreClock:
    """A lower bound of the store's time, from the best answer of the last while.

    The two clocks may drift apart, and the store's may be set: so what was heard is trusted for a while only,
    and given up at once for an answer that puts the store further back than any answer takes.
    """

    def __init__(self, local: Callable[[], float] = time.monotonic) -> None:
        self._local = local
        self._ahead = float("-inf")
        self._trusted_until = float("-inf")

    def hear(self, now: int) -> None:
        """Take in the time of an answer that has just come."""
        local = self._local()
        ahead = now - local * SECOND
        if ahead > self._ahead or ahead < self._ahead - STEP or local > self._trusted_until:
            self._ahead, self._trusted_until = ahead, local + TRUSTED_FOR

    def hear_of(self, moment: int) -> None:
        """Take in that a moment of the store's is past, however long ago, as that of a start in the inbox."""
        self._ahead = max(self._ahead, moment - self._local() * SECOND)

    def local_time(self, moment: int) -> float:
        """Give the local time from which on the store's time is surely that moment or later.

        It is infinite as long as nothing was heard.
        """
        return (moment - self._ahead) / SECOND
