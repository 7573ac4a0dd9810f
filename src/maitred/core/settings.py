"""What a queue is set to, as the rules see it: plain values, durations in microseconds, space in bytes."""

from dataclasses import dataclass, fields
from typing import Literal

from maitred.core.classes import DurationClass
from maitred.core.stages import DEFAULT, PROVISIONING, STAGE

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
    output_limit: int = 1 << 20
    artifact_limit: int = 4 << 20
    stages: tuple[str, ...] = DEFAULT
    space: int = 0
    profiles: tuple[str, ...] = ()
    backoff: int = SECOND
    most_backoff: int = 5 * MINUTE
    ledger: str = ""
    layout: Literal["seed", "mrt-zk"] = "seed"
    classes: tuple[DurationClass, ...] = ()
    elastic: Literal["borrow", "squeeze"] = "borrow"
    interactive_idle: int = 5 * MINUTE
    interactive_cap: int = 60 * MINUTE
    interactive_per_submitter: int = 1
    sandbox_memory: int = 512 << 20
    sandbox_processes: int = 64
    sandbox_file_size: int = 64 << 20
    sandbox_open_files: int = 256
    sandbox_disk: int = 256 << 20
    sandbox_cpu: int = 0
    sandbox_network: bool = False
    private_addresses: bool = False

    @property
    def levels(self) -> tuple[DurationClass, ...]:
        """The duration classes; a queue that names none has one, with the queue's time limit."""
        return self.classes or (DurationClass("default", self.time_limit),)

    @property
    def staged(self) -> bool:
        """Whether jobs go through stages with a handler each, instead of one that runs what they name."""
        return self.stages != DEFAULT

    def need(self, stage: int) -> str:
        """Name what a worker must serve to carry a job through the n-th stage of a pipeline."""
        return STAGE + self.stages[stage - 1]

    @property
    def provisioning(self) -> int:
        """The number of the stage from which on a job has its space; 0 where there is no budget."""
        return self.stages.index(PROVISIONING) + 1 if self.space and PROVISIONING in self.stages else 0

    @property
    def floor_plan(self) -> object:
        """What may not change while a job waits or runs: names and caps of the classes, and the policy."""
        return [(each.name, each.cap) for each in self.classes], self.elastic

    def changed(self, old: "Settings") -> list[str]:
        """Name the settings that were not the same before."""
        return [each.name for each in fields(self) if getattr(self, each.name) != getattr(old, each.name)]
