"""Duration classes: how long a job may hold a slot, and how many may do so at once.

Classes stand shortest first and are numbered 1..N. A running job of class c holds one unit of every level
1..c, so level k counts the running jobs of class k and longer. Level 1 is the live slots; the limits of the
others follow from it, level by level, so that one more worker never makes anybody start later.
"""

from collections.abc import Sequence
from typing import NamedTuple

# A percentage is kept in thousandths of a percent, so that limits are computed with whole numbers.
PERCENT = 1_000
WHOLE = 100 * PERCENT


class Limit(NamedTuple):
    """How many running jobs a level may have: a count, or a part of the slots in thousandths of a percent."""

    amount: int
    percent: bool = False


class DurationClass(NamedTuple):
    """A class of jobs: its name, the longest time in microseconds, and its limit (None for the first)."""

    name: str
    cap: int
    limit: Limit | None = None


def limits(classes: Sequence[DurationClass], slots: int) -> list[int]:
    """Give the limit of each level for so many live slots.

    A percentage is derived from the level above: rounded to the nearest, and at least one. After a count it
    is a part of that count. A class without a limit has that of the level above. With no slot all are 0.
    """
    found = [slots]
    part = WHOLE
    for each in classes[1:]:
        above = found[-1]
        if each.limit is None:
            wanted = above
        elif each.limit.percent:
            wanted = (2 * above * each.limit.amount + part) // (2 * part)
            part = each.limit.amount
        else:
            wanted, part = each.limit.amount, WHOLE
        found.append(min(above, max(1, wanted)))
    return found


def level_for(classes: Sequence[DurationClass], duration: int) -> int | None:
    """Give the smallest class that holds this duration; None if even the longest is too short."""
    for level, each in enumerate(classes, 1):
        if duration <= each.cap:
            return level
    return None
