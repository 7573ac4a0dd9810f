"""What the server answers: typed documents, as HTTP.md names their fields.

They serve three readers: the OpenAPI description, the client and the Python API. The server itself writes
plain objects of the same shape, since checking its own answers would only cost time.
"""

from datetime import UTC, datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer
from pydantic.config import JsonDict

Band = Literal["front", "immediate", "scheduled", "bulk", "interactive"]
Outcome = Literal["created", "updated", "upgraded", "next-version", "known"]

# JSON has microseconds always, as the server writes them, so that times can be compared as text.
Time = Annotated[
    datetime,
    PlainSerializer(lambda time: time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"), when_used="json"),
]

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


class _Document(BaseModel):
    """A newer server may say more than this client knows: that is no fault."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class Who(_Document):
    """A submitter."""

    type: str
    id: str


class Reason(_Document):
    """Why a waiting job waits: a stable code, and a sentence for people."""

    code: str
    text: str


class Estimate(_Document):
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


class Hold(_Document):
    """One reason for which a job is held."""

    kind: str
    name: str
    by: str
    reason: str | None = None
    at: Time


class TimelineEntry(_Document):
    """One start of a job, and how it ended; `end` is null while it runs, `code` is null if it went well."""

    stage: str
    version: int
    attempt: int
    worker: str
    start: Time
    end: Time | None
    code: str | None


class Progress(_Document):
    """How far a run says that it is."""

    fraction: float | None = Field(None, description="From 0 to 1.")
    message: str | None = None


class ArtifactEntry(_Document):
    """A file that a job made and that is kept."""

    name: str
    content_type: str
    size: int = Field(description="Bytes.")


class OutputPiece(_Document):
    """A piece of what a job said; numbers count from 1 for each version, over all its runs."""

    number: int
    at: Time
    attempt: int
    stream: str = Field(description="`stdout`, `stderr`, `log`, `tty`, `control` or `progress`.")
    text: str = Field(description="What is not UTF-8 is replaced.")
    cut: int = Field(0, description="Bytes before it that were left out.")


class OutputDocument(_Document):
    """Some of what a job said; only the last of it is kept, up to the queue's `output`."""

    items: list[OutputPiece]
    first: int = Field(description="The number of the oldest piece that is kept.")
    next: int = Field(description="Where to read on: `from` of the next call.")
    ended: bool = Field(description="Whether the job has ended, so that no more will come.")


class JobDocument(_Document):
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
    holds: list[Hold] = []
    last_successful_status: str | None = None
    retry_count: int
    space_needed: int | None = Field(None, description="Bytes of the queue's space, as a stage said.")
    identifiers: dict[str, str | list[str]] = Field({}, description="What stages called it.")
    ledger_id: str | None = None
    result: Any = None
    artifacts: list[ArtifactEntry] = []
    timeline: list[TimelineEntry] = []


class OthersJob(_Document):
    """What a submitter's key is told of a job that is not of its submitters."""

    id: str
    band: Band | None = None
    class_: str | None = Field(None, alias="class")
    state: str | None = None
    position: int | None = None


class PauseDocument(_Document):
    """Who paused a queue, why if they said so, and when."""

    by: str
    reason: str | None = None
    at: Time


class ClassDocument(_Document):
    """A class of jobs: how long they may run, how many at once, and how many do.

    A running job holds one unit of its own class and of each shorter one.
    """

    name: str
    cap: float = Field(description="Seconds.")
    limit: int = Field(description="Units; of the first class, the live slots.")
    running: int = Field(description="Jobs that hold this class and no longer one.")
    used: int = Field(0, description="Units that jobs of this and of longer classes hold.")


class ClassSetting(_Document):
    """A class as the settings have it."""

    name: str
    cap: float = Field(description="Seconds.")
    limit: int | str | None = Field(
        None, description='A count, or a part such as "50%"; null: as much as the class before.'
    )


class InteractiveSetting(_Document):
    """The bounds of interactive jobs."""

    idle: float = Field(description="Seconds without a word.")
    cap: float = Field(description="Seconds in all.")
    per_submitter: int = Field(description="How many one submitter may have at once.")


class BackoffSetting(_Document):
    """How long a job waits after a transient failure."""

    first: float = Field(description="Seconds after the first one; they double.")
    most: float = Field(description="Seconds at most.")


class SandboxSetting(_Document):
    """What a command and all that it starts may use; sizes in bytes, `cpu` in seconds of each process."""

    memory: int
    processes: int
    file_size: int
    open_files: int
    disk: int
    cpu: float | None
    network: bool


class SettingsDocument(_Document):
    """A queue's settings, durations in seconds; a newer server may have more of them."""

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    order: str
    time_limit: float = Field(description="Of the longest class, where there are classes.")
    classes: list[ClassSetting] = Field([], description="Shortest first; empty if there is only one.")
    elastic: Literal["borrow", "squeeze"] = "borrow"
    interactive: InteractiveSetting | None = None
    sandbox: SandboxSetting | None = None
    private_addresses: bool = Field(False, description="Whether addresses in a job may be private ones.")
    stages: list[str] = Field(["processing"], description="The steps of a job, in order.")
    space: int | None = Field(None, description="Bytes for all jobs past `provisioning`; null: no budget.")
    profiles: list[str] | None = Field(None, description="The profiles that a job may name; null: any.")
    backoff: BackoffSetting | None = None
    output: int | None = Field(None, description="Bytes of output that are kept of a job.")
    artifacts: int | None = Field(None, description="Bytes of artifacts that are kept of a job.")
    ledger: str | None = Field(None, description="Where the record is kept, if not in the store.")
    layout: Literal["seed", "mrt-zk"] | None = Field(None, description="Of the ledger's tree.")


class Quotes(_Document):
    """How the estimates that were told of jobs held."""

    quoted: int = Field(description="Ranges that were told and compared with the start that came.")
    covered: int = Field(description="Those of them that the start fell into.")


class WaitsDocument(_Document):
    """How long jobs waited lately, from their release to their start, in seconds."""

    count: int = Field(description="How many starts this is made of, at most 1000.")
    mean: float
    p50: float
    p90: float
    p99: float
    window: float = Field(description="Seconds between the first and the last of these starts.")
    estimate: Quotes


class HeldDocument(_Document):
    """The submitters and profiles of a queue that are held; a submitter's name is as `user:7`."""

    submitters: list[Hold] = []
    profiles: list[Hold] = []


class QueueDocument(_Document):
    """A queue: its settings, what is in it, and whether it is paused."""

    name: str
    settings: SettingsDocument
    counts: dict[str, int] = Field(description="Jobs in each state.")
    waiting: int
    running: int
    slots: int
    free: int
    classes: list[ClassDocument]
    paused: bool
    pause: PauseDocument | None = None
    held: HeldDocument
    waits: WaitsDocument | None = Field(
        None, description="As this server heard of them; null before the first start."
    )
    now: Time


class RunningJob(_Document):
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


class PlaceDocument(_Document):
    """A place in line: it is the submitter's, not the job's."""

    nonce: int
    release_at: Time


class SubmitterDocument(_Document):
    """What one submitter has in line, and how long its next job would wait for release."""

    jobs: list[str]
    places: list[PlaceDocument]
    recent: int
    next_delay: float
    held: bool


class ProfileDocument(_Document):
    """A profile, and what holds it."""

    name: str
    held: bool
    hold: Hold | None = None


class WorkerDocument(_Document):
    """A worker: its slots, what it serves, and when it was last seen."""

    name: str
    slots: int
    busy: int
    draining: bool
    serves: list[str]
    sandbox: list[str]
    last_seen: Time


class ViolationDocument(_Document):
    """A rule of the store that is broken, and where; `repaired` tells whether it was put right."""

    code: str
    text: str
    repaired: bool


class CheckDocument(_Document):
    """What a check of a queue found: nothing, if all is well."""

    queue: str
    violations: list[ViolationDocument]


class ChangeDocument(_Document):
    """One thing that was put right: a stable code, and a sentence for people."""

    code: str
    text: str


class ReconcileDocument(_Document):
    """What was done to bring a queue's line in accord with its ledger.

    `ledger` is null where that is in the same store, and then there is nothing to do.
    """

    queue: str
    ledger: str | None
    changes: list[ChangeDocument]


class SecretDocument(_Document):
    """A secret that callbacks are signed with, and until when; null is for ever."""

    secret: str
    until: Time | None = None


class KeyDocument(_Document):
    """An API key, without the key itself, which is not kept. No queues or submitters: it is good for all."""

    id: str
    name: str
    role: Literal["viewer", "submitter", "operator", "admin"]
    queues: list[str]
    submitters: list[str]
    created_at: Time
    expires_at: Time | None = None
    revoked: bool = False
    secrets: list[SecretDocument] = Field(description="What its callbacks are signed with, the newest first.")
    key: str | None = Field(None, description="The key itself; only in the answer to the call that made it.")


class AuditEntry(_Document):
    """One change: who made it, by which call, to what, from where, and what became of it."""

    id: str
    at: Time
    by: str = Field(description="The id of the key; `local` is whoever called while there were no keys.")
    name: str = Field(description="The name of the key then.")
    address: str = Field(description="Where the call came from.")
    action: str = Field(description="The method and the route.")
    queue: str | None = None
    subject: str | None = Field(None, description="The job, batch, submitter, profile or key.")
    status: int = Field(description="The status of the answer; 101 is a session that was opened.")


class DeliveryDocument(_Document):
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


Item = TypeVar("Item", bound=BaseModel)


class Page(_Document, Generic[Item]):
    """Part of a list: `next` is the cursor of the part after this one, null at the end."""

    items: list[Item]
    next: str | None
    total: int | None = Field(
        description="How many there are in all; null where too many had to be searched."
    )


class FaultEntry(_Document):
    """One thing wrong with a request."""

    path: str
    message: str


class Problem(_Document):
    """Why a request was refused, as RFC 9457 has it."""

    model_config = ConfigDict(
        extra="ignore",
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:maitred:problem:unknown-job",
                    "title": "There is no such job",
                    "status": 404,
                    "detail": "queue 'grading' has no job 'nobody'",
                }
            ]
        },
    )

    type: str
    title: str
    status: int
    detail: str
    errors: list[FaultEntry] | None = None
    limit: int | None = Field(None, description="The limit that was reached, in the refusal of a full queue.")
