"""What the server answers of a batch: its document, its report, and what its watchers are told."""

from typing import Any, Literal

from pydantic import Field

from maitred.wire.answer import Answer, Hold, Time, Who
from maitred.wire.events import AnyEvent, Heard, ResetEvent

BatchStateName = Literal[
    "pending", "processing", "held", "reporting", "completed", "failed", "update-reporting"
]


class BatchDocument(Answer):
    """A batch: what was sent, where it is, and how many of its jobs are where.

    A payload and the bodies of jobs are not repeated: one may be large, the others are jobs by now.
    """

    id: str
    queue: str
    outcome: Literal["created", "known"] | None = Field(
        None, description="Whether the submission made it; only in the answer to one."
    )
    external_id: str | None = None
    state: BatchStateName
    sealed: bool = Field(description="Whether the last of its jobs is in.")
    counts: dict[str, int] = Field(
        description="Its jobs: pending, held, processing, failed, completed and deleted."
    )
    message: str | None = Field(None, description="Why it could not be expanded, if so.")
    sequence: int = Field(0, description="How many reports of it are stored.")
    unsent: bool = Field(False, description="Whether the last report is still to be sent.")
    holds: list[Hold] = Field(default_factory=list)
    created_at: Time
    modified_at: Time
    submitter: Who
    profile_name: str | None = None
    payload_filename: str | None = None
    manifest_type: str | None = None
    response_type: str | None = None
    submission_mode: str | None = None
    erc: dict[str, str] | None = None
    response_url: str | None = None
    run: dict[str, Any] | None = None
    class_: str | None = Field(None, alias="class")
    duration: float | None = None
    priority: int = 5
    bulk: bool = False
    seal: bool = True


class ReportRow(Answer):
    """A job in a report."""

    id: str
    key: str
    local_id: str | None = None
    message: str | None = None


class ReportDocument(Answer):
    """What has become of the jobs of a batch; an update report has those of which something new is told."""

    batch: str
    external_id: str | None = None
    sequence: int = Field(description="1 is the report, the others are update reports.")
    kind: Literal["report", "update-report"]
    at: Time
    state: Literal["completed", "failed"]
    message: str | None = None
    completed: list[ReportRow]
    failed: list[ReportRow]
    deleted: list[ReportRow]


class RetriedDocument(Answer):
    """How many failed jobs of a batch were retried."""

    batch: str
    retried: int


class BatchState(Heard):
    """Where a batch is."""

    state: str = Field(description="As in the document, or `deleted`.")
    sealed: bool = False
    counts: dict[str, int] = Field(default_factory=dict)
    message: str | None = None


class BatchStateEvent(AnyEvent, BatchState):
    """Where the batch is, at first and whenever that changes."""

    event: Literal["state"] = "state"

    @property
    def is_last(self) -> bool:
        """A batch that was deleted has no report."""
        return self.state == "deleted"


class BatchReportEvent(AnyEvent):
    """A report was stored; the numbers are those of its rows, which `/report` has."""

    event: Literal["report"] = "report"
    sequence: int
    kind: Literal["report", "update-report"]
    at: Time
    state: Literal["completed", "failed"]
    message: str | None = None
    completed: int
    failed: int
    deleted: int

    @property
    def is_last(self) -> bool:
        """It is told when the batch has ended."""
        return True


BatchEvent = BatchStateEvent | BatchReportEvent | ResetEvent

BATCH_EVENTS: dict[str, type[BatchStateEvent | BatchReportEvent | ResetEvent]] = {
    "state": BatchStateEvent,
    "report": BatchReportEvent,
    "reset": ResetEvent,
}
