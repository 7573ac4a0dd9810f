"""What the server answers of a job, as HTTP.md names its fields: where it is, what it said, who was told."""

from typing import Any, Literal

from pydantic import ConfigDict, Field
from pydantic.config import JsonDict

from maitred.wire.answer import Answer, Hold, Time, Who

Band = Literal["front", "immediate", "scheduled", "bulk", "interactive"]
Outcome = Literal["created", "updated", "upgraded", "next-version", "known"]

_FIRST: JsonDict = {
    "id": "0d5DJvgZCz6Ee1Gm8hJ6sVJk",
    "queue": "grading",
    "key": "assignment-3/ada",
    "submitter": {"type": "user", "id": "ada"},
    "response_url": None,
    "delay": 0.0,
    "priority": 5,
    "immediate": False,
    "bulk": False,
    "class": "medium",
    "duration": 5.0,
    "run": {"handler": "grade", "args": {"assignment": 3}},
    "metadata": {"course": "cs101"},
    "version": 1,
    "running_versions": [],
    "state": "pending",
    "phase": "waiting",
    "band": "scheduled",
    "created_at": "2026-11-15T20:55:00.000000Z",
    "release_at": "2026-11-15T20:55:00.000000Z",
    "nonce": 1794776100000000,
    "position": 1,
    "waiting_for": {"code": "slots", "text": "all slots are busy"},
    "attempt": 0,
    "retry_count": 0,
}


class Reason(Answer):
    """Why a waiting job waits: a stable code, and a sentence for people."""

    code: str
    text: str


class Estimate(Answer):
    """When a job is expected to start; null where nothing can be said."""

    expected: Time | None = None
    low: Time | None = Field(None, description="With `high`, the range in which it will probably start.")
    high: Time | None = None
    at_latest: Time | None = Field(
        None,
        description="A promise to the place: it never moves later while the queue is open, no worker leaves "
        "and nothing comes in before it. Null for a place that is not due or in bulk.",
    )
    as_of: Time | None = Field(None, description="When this was foreseen.")


class TimelineEntry(Answer):
    """One start of a job, and how it ended; `end` is null while it runs, `code` is null if it went well."""

    stage: str
    version: int
    attempt: int
    worker: str
    start: Time
    end: Time | None
    code: str | None


class Progress(Answer):
    """How far a run says that it is."""

    fraction: float | None = Field(None, description="From 0 to 1.")
    message: str | None = None


class ArtifactEntry(Answer):
    """A file that a job made and that is kept."""

    name: str
    content_type: str
    size: int = Field(description="Bytes.")


class OutputPiece(Answer):
    """A piece of what a job said; numbers count from 1 for each version, over all its runs."""

    number: int
    at: Time
    attempt: int
    stream: str = Field(description="`stdout`, `stderr`, `log`, `tty`, `control` or `progress`.")
    text: str = Field(description="What is not UTF-8 is replaced.")
    cut: int = Field(0, description="Bytes before it that were left out.")


class OutputDocument(Answer):
    """Some of what a job said; only the last of it is kept, up to the queue's `output`."""

    items: list[OutputPiece]
    first: int = Field(description="The number of the oldest piece that is kept.")
    next: int = Field(description="Where to read on: `from` of the next call.")
    ended: bool = Field(description="Whether the job has ended, so that no more will come.")


class JobDocument(Answer):
    """A job: what was sent, where it is, and what has become of it."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True, json_schema_extra={"examples": [_FIRST]})

    id: str
    queue: str
    outcome: Outcome | None = Field(None, description="What became of a PUT; only in the answer to one.")
    key: str
    submitter: Who
    response_url: str | None = None
    delay: float = Field(description="Seconds between arrival and release.")
    priority: int
    immediate: bool
    bulk: bool
    class_: str | None = Field(
        None,
        alias="class",
        description="The class that was asked for, or that holds the duration; null if it is elastic.",
    )
    batch: str | None = None
    profile_name: str | None = None
    run: dict[str, Any] = Field(description="As sent; `files` is the list of their names.")
    metadata: dict[str, str]
    expires_at: Time | None = None
    abandon_after: float | None = Field(
        None, description="It is cancelled when nobody has watched it for so many seconds."
    )
    version: int
    running_versions: list[int]
    state: str
    phase: Literal["waiting", "running"] | None
    stage: str | None = None
    code: str | None = None
    message: str | None = None
    band: Band
    created_at: Time
    release_at: Time | None = None
    nonce: int | None = None
    delay_reason: str | None = None
    position: int | None = Field(None, description="1 is first in line; null if it does not wait.")
    estimate: Estimate | None = None
    waiting_for: Reason | None = None
    duration: float | None = Field(
        None,
        description="Seconds: granted while it runs; asked for while it waits (the longest cap, if it is "
        "elastic); what it had when it has ended, null where that is unknown.",
    )
    attempt: int
    worker: str | None = None
    progress: Progress | None = Field(None, description="Of its present or its last run.")
    holds: list[Hold] = Field([])
    last_successful_status: str | None = None
    retry_count: int
    space_needed: int | None = Field(None, description="Bytes of the queue's space, as a stage said.")
    identifiers: dict[str, str | list[str]] = Field({}, description="What stages called it.")
    ledger_id: str | None = None
    result: Any = None
    artifacts: list[ArtifactEntry] = Field([])
    timeline: list[TimelineEntry] = Field([])


class OthersJob(Answer):
    """What a submitter's key is told of a job that is not of its submitters."""

    id: str
    band: Band | None = None
    class_: str | None = Field(None, alias="class")
    state: str | None = None
    position: int | None = None


class RunningJob(Answer):
    """A job that runs: since when, where, and for how long it may."""

    id: str
    key: str
    version: int
    attempt: int
    submitter: Who
    class_: str | None = Field(None, alias="class", description="The class whose units it holds.")
    elastic: bool = Field(False, description="Whether it asked for no class and no duration.")
    duration: float = Field(description="Seconds granted.")
    elapsed: float = Field(description="Seconds since its start.")
    started_at: Time
    worker: str


class DeliveryDocument(Answer):
    """One try to tell a receiver something about a job."""

    id: str = Field(description="The `webhook-id`: the same in all tries at one message.")
    type: Literal["job.started", "job.requeued", "job.ended"]
    at: Time
    attempt: int = Field(description="The `maitred-attempt`: 1 is the first try.")
    answer: Literal["sent", "again", "refused"] = Field(
        description="Whether it arrived, is tried again, or was given up."
    )
    said: str = Field(description="What the receiver answered, or why there is no answer.")
    took: float
    next_at: Time | None = Field(None, description="When it is tried again.")
