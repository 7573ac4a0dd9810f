"""What a queue is told by its operator, as plain numbers.

The settings of one queue in the units that the rules count in: every duration and moment is a whole number of
microseconds, so that no store ever rounds one. Reading them from a file, and refusing nonsense, is the
business of `maitred.config`; the rules here only use them.
"""

from dataclasses import dataclass
from typing import Literal

SECOND = 1_000_000
MINUTE = 60 * SECOND
DAY = 24 * 60 * MINUTE

Order = Literal["newest-first", "oldest-first"]


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one queue; durations are microseconds.

    `per_recent` is what each recent submission adds to a new job's delay, 0 for no delay policy; `window` is
    how far back a submission is recent. `stages` are the steps of a job, in order.
    """

    order: Order = "newest-first"
    eager: bool = False
    per_recent: int = 0
    window: int = 15 * MINUTE
    time_limit: int = 10 * MINUTE
    lease: int = 15 * SECOND
    attempts: int = 3
    grace: int = 10 * SECOND
    kill_after: int = 400_000
    retention: int = 7 * DAY
    max_delay: int = 30 * DAY
    max_total: int = 1_000_000
    max_per_submitter: int = 5_000
    max_body: int = 1 << 20
    stages: tuple[str, ...] = ("processing",)
