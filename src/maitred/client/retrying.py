"""Asking again: what is safe to be asked twice, and when.

A call that was never heard, since nobody listened or the key called too often, can be made again, whatever it
is. One that broke off, or was answered with 503, may have been done: it is made again only if doing it twice
is no harm. That is reading, PUT and DELETE, and those POSTs that say so.
"""

import random
from typing import NamedTuple

import httpx

from maitred.errors import MaitredError, TooOften

# How long to wait before each next try, in seconds; there is one for each.
RETRIES = (0.1, 0.5, 1.0, 2.0)
PATIENCE = 30.0
# A pause is up to this much longer or shorter, so that many who were cut off do not come back at once.
JITTER = 0.25

_SAFE = frozenset({"GET", "PUT", "DELETE"})
_UNHEARD = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Question(NamedTuple):
    """What is asked: how, where, of which queue and id, and for how long an answer is waited for."""

    method: str
    path: str
    queue: str = ""
    id: str = ""
    again: bool = False
    patience: float | None = PATIENCE

    def may_repeat(self, error: MaitredError) -> bool:
        """Tell whether it may be asked again after this."""
        return self.again or self.method in _SAFE or is_unheard(error)


def is_unheard(error: MaitredError) -> bool:
    """Tell whether nothing can have been done."""
    return isinstance(error, TooOften) or isinstance(error.__cause__, _UNHEARD)


def pause_after(error: MaitredError, pause: float) -> float:
    """Give how long to wait before the next try, in seconds; not less than the server asks for."""
    spread = pause * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - nobody must guess it
    return max(spread, error.wait) if isinstance(error, TooOften) else spread
