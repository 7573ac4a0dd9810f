"""What a queue is set to, as the rules see it: plain values, durations in whole microseconds."""

from dataclasses import dataclass
from typing import Literal

from maitred.core.classes import DurationClass

SECOND = 1_000_000
MINUTE = 60 * SECOND
DAY = 24 * 60 * MINUTE


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one queue, with the defaults of a queue that sets nothing."""

    order: Literal["newest-first", "oldest-first"] = "newest-first"
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
    classes: tuple[DurationClass, ...] = ()
    elastic: Literal["borrow", "squeeze"] = "borrow"
    interactive_idle: int = 5 * MINUTE
    interactive_cap: int = 60 * MINUTE
    interactive_per_submitter: int = 1

    @property
    def levels(self) -> tuple[DurationClass, ...]:
        """The duration classes; a queue that names none has one, with the queue's time limit."""
        return self.classes or (DurationClass("default", self.time_limit),)

    @property
    def floor_plan(self) -> object:
        """What may not change while a job waits or runs: names and caps of the classes, and the policy."""
        return [(each.name, each.cap) for each in self.classes], self.elastic
