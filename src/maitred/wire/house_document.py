"""What the server answers of a queue: its settings, who waits and works in it, and whether all is well."""

from typing import Literal

from pydantic import ConfigDict, Field

from maitred.wire.answer import Answer, Hold, Time


class PauseDocument(Answer):
    """Who paused a queue, why if they said so, and when."""

    by: str
    reason: str | None = None
    at: Time


class ClassDocument(Answer):
    """A class of jobs: how long they may run, how many at once, and how many do.

    A running job holds one unit of its own class and of each shorter one.
    """

    name: str
    cap: float = Field(description="Seconds.")
    limit: int = Field(description="Units; of the first class, the live slots.")
    running: int = Field(description="Jobs that hold this class and no longer one.")
    used: int = Field(0, description="Units that jobs of this and of longer classes hold.")


class ClassSetting(Answer):
    """A class as the settings have it."""

    name: str
    cap: float = Field(description="Seconds.")
    limit: int | str | None = Field(
        None, description='A count, or a part such as "50%"; null: as much as the class before.'
    )


class InteractiveSetting(Answer):
    """The bounds of interactive jobs."""

    idle: float = Field(description="Seconds without a word.")
    cap: float = Field(description="Seconds in all.")
    per_submitter: int = Field(description="How many one submitter may have at once.")


class BackoffSetting(Answer):
    """How long a job waits after a transient failure."""

    first: float = Field(description="Seconds after the first one; they double.")
    most: float = Field(description="Seconds at most.")


class SandboxSetting(Answer):
    """What a command and all that it starts may use; sizes in bytes, `cpu` in seconds of each process."""

    memory: int
    processes: int
    file_size: int
    open_files: int
    disk: int
    cpu: float | None
    network: bool


class SettingsDocument(Answer):
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


class Quotes(Answer):
    """How the estimates that were told of jobs held."""

    quoted: int = Field(description="Ranges that were told and compared with the start that came.")
    covered: int = Field(description="Those of them that the start fell into.")


class WaitsDocument(Answer):
    """How long jobs waited lately, from their release to their start, in seconds."""

    count: int = Field(description="How many starts this is made of, at most 1000.")
    mean: float
    p50: float
    p90: float
    p99: float
    window: float = Field(description="Seconds between the first and the last of these starts.")
    estimate: Quotes


class HeldDocument(Answer):
    """The submitters and profiles of a queue that are held; a submitter's name is as `user:7`."""

    submitters: list[Hold] = Field([])
    profiles: list[Hold] = Field([])


class QueueDocument(Answer):
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


class PlaceDocument(Answer):
    """A place in line: it is the submitter's, not the job's."""

    nonce: int
    release_at: Time


class SubmitterDocument(Answer):
    """What one submitter has in line, and how long its next job would wait for release."""

    jobs: list[str]
    places: list[PlaceDocument]
    recent: int
    next_delay: float
    held: bool


class ProfileDocument(Answer):
    """A profile, and what holds it."""

    name: str
    held: bool
    hold: Hold | None = None


class WorkerDocument(Answer):
    """A worker: its slots, what it serves, and when it was last seen."""

    name: str
    slots: int
    busy: int
    draining: bool
    serves: list[str]
    sandbox: list[str]
    last_seen: Time


class ViolationDocument(Answer):
    """A rule of the store that is broken, and where; `repaired` tells whether it was put right."""

    code: str
    text: str
    repaired: bool


class CheckDocument(Answer):
    """What a check of a queue found: nothing, if all is well."""

    queue: str
    violations: list[ViolationDocument]


class ChangeDocument(Answer):
    """One thing that was put right: a stable code, and a sentence for people."""

    code: str
    text: str


class ReconcileDocument(Answer):
    """What was done to bring a queue's line in accord with its ledger.

    `ledger` is null where that is in the same store, and then there is nothing to do.
    """

    queue: str
    ledger: str | None
    changes: list[ChangeDocument]
