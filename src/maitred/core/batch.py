"""Batches: jobs that were submitted together, and have one report.

A batch follows its jobs by counters that move in the same step as the jobs. When it is sealed and all its
jobs have ended, it is reported, once; after that only an update report says what changed since. One table has
all the moves of its state.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, NamedTuple

from maitred.core.job import Job, Phase, Submitter
from maitred.errors import IllegalMove

BUCKETS = ("pending", "held", "processing", "failed", "completed", "deleted")
UNFINISHED = BUCKETS[:3]


class BatchState(StrEnum):
    """Where a batch is."""

    PENDING = "pending"
    PROCESSING = "processing"
    HELD = "held"
    REPORTING = "reporting"
    COMPLETED = "completed"
    FAILED = "failed"
    UPDATE_REPORTING = "update-reporting"


_ENDS = (BatchState.COMPLETED, BatchState.FAILED)
MOVES: dict[BatchState, tuple[BatchState, ...]] = {
    BatchState.PENDING: (BatchState.PROCESSING, BatchState.HELD),
    BatchState.PROCESSING: (BatchState.REPORTING, BatchState.HELD),
    BatchState.HELD: (BatchState.PENDING, BatchState.PROCESSING),
    BatchState.REPORTING: _ENDS,
    BatchState.COMPLETED: (),
    BatchState.FAILED: (BatchState.UPDATE_REPORTING,),
    BatchState.UPDATE_REPORTING: _ENDS,
}

Work = Literal["expand", "report", "send"]


class Row(NamedTuple):
    """One job of a batch: the record of its newest version there (0 if it was deleted), and what stays of it.

    `label` is what a report needs of a job that is gone, opaque; `reported` is the state last told.
    """

    record: int
    label: bytes
    reported: str = ""


class RowView(NamedTuple):
    """A job of a batch as a report sees it; `state` is its present one, or `deleted`."""

    id: str
    label: bytes
    state: str
    message: str
    reported: str


@dataclass(slots=True)
class Batch:
    """A batch as the store keeps it. `submission` is what was sent, opaque.

    `expanding` tells that it has a payload or jobs that are not in yet, `sealing` that it is sealed when they
    are. `fault` says why it could not be expanded. `sequence` counts its stored reports, the last of which is
    `unsent` until it was delivered. `aged_at` is when it was last touched, or looked at by the sweep.
    """

    id: str
    external_id: str
    submitter: Submitter
    profile: str
    submission: bytes
    created_at: int
    modified_at: int
    state: BatchState = BatchState.PENDING
    sealed: bool = False
    sealing: bool = True
    expanding: bool = False
    fault: str = ""
    sequence: int = 0
    report: bytes = b""
    unsent: bool = False
    tries: int = 0
    try_at: int = 0
    owner: str = ""
    token: bytes = b""
    locked_until: int = 0
    aged_at: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(BUCKETS, 0))
    rows: dict[str, Row] = field(default_factory=dict)

    @property
    def unfinished(self) -> int:
        """How many of its jobs have not ended."""
        return sum(self.counts[bucket] for bucket in UNFINISHED)

    @property
    def frozen(self) -> bool:
        """Whether its rows are fixed: from the step that begins a report until that report is stored."""
        updating = self.state is BatchState.UPDATE_REPORTING and not self.unfinished
        return self.state is BatchState.REPORTING or updating

    @property
    def reported(self) -> bool:
        """Whether it has had its report, so that what comes later is not part of it."""
        return self.sequence > 0

    def work(self, now: int) -> Work | None:
        """Name what a server could do for it now."""
        if self.expanding and self.state in (BatchState.PENDING, BatchState.PROCESSING):
            return "expand"
        if self.frozen:
            return "report"
        return "send" if self.unsent and self.try_at <= now else None

    def locked(self, now: int) -> bool:
        """Tell whether a live owner has it."""
        return bool(self.token) and self.locked_until > now

    def move(self, new: BatchState, now: int) -> None:
        """Go to a state that the table allows from here; `IllegalMove` and no change otherwise."""
        if new is not self.state and new not in MOVES[self.state]:
            raise IllegalMove(self.state, new)
        self.state, self.modified_at = new, now

    def verdict(self) -> BatchState:
        """Give the state that its report ends it in."""
        return BatchState.FAILED if self.counts["failed"] or self.fault else BatchState.COMPLETED


class BatchOrder(NamedTuple):
    """What the submission of a batch asks of the store."""

    external_id: str
    submitter: Submitter
    profile: str
    submission: bytes
    expanding: bool
    sealed: bool


class BatchPut(NamedTuple):
    """What became of a submission: the batch's id, and whether it was made or known already."""

    id: str
    created: bool


class Errand(NamedTuple):
    """A batch that was locked for a server, with what is to be done for it."""

    batch: Batch
    work: Work


def bucket_of(job: Job) -> str:
    """Name the part of its batch that a job is counted in."""
    if job.phase is Phase.ENDED:
        return "failed" if job.code else "completed"
    if job.phase is Phase.HELD:
        return "held"
    return "processing" if job.stage else "pending"


def batch_id(number: int) -> str:
    """Write the id of the n-th batch of a queue."""
    return f"bid{number:010d}"
