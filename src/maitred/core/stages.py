"""States of a job, and the moves between them: one table for every pipeline.

A job is `pending` until its first start, then it is in the stage at which it runs or waits; `held`,
`failed` and `completed` stand beside the stages. A stage ends in the next one, or fails; a job that was
held or failed goes on where it was. Whatever the table does not have is refused and changes nothing.
"""

from collections.abc import Sequence
from functools import cache

from maitred.errors import IllegalMove

PENDING, HELD, FAILED, COMPLETED = "pending", "held", "failed", "completed"
RESERVED = frozenset({PENDING, HELD, FAILED, COMPLETED, "deleted"})
DEFAULT = ("processing",)
INGEST = ("estimating", "provisioning", "downloading", "processing", "recording", "notify")
PROVISIONING = "provisioning"
STAGE = "stage:"
STAGE_NAME = r"[a-z][a-z0-9_-]{0,31}"


def moves(stages: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Give the table: from each state, the states that a job may move to."""
    table: dict[str, tuple[str, ...]] = {PENDING: (stages[0], HELD, FAILED)}
    for stage, following in zip(stages, [*stages[1:], COMPLETED], strict=True):
        table[stage] = (following, HELD, FAILED)
    table[HELD] = (PENDING, *stages, FAILED)
    table[FAILED] = (PENDING, *stages)
    table[COMPLETED] = ()
    return table


_known_moves = cache(moves)


def check_move(stages: Sequence[str], old: str, new: str) -> None:
    """Refuse a move that the table does not have; staying where it is, is no move."""
    if old != new and new not in _known_moves(tuple(stages)).get(old, ()):
        raise IllegalMove(old, new)


def last_successful(stages: Sequence[str], stage: int, state: str) -> str | None:
    """Name the stage that a job finished last: the one before where it is, whatever holds it up there."""
    return name_of(stages, stage if state == COMPLETED else stage - 1)


def name_of(stages: Sequence[str], number: int) -> str | None:
    """Name the n-th stage; None for none, and for one of an ended job that its queue no longer has."""
    return stages[number - 1] if 0 < number <= len(stages) else None
