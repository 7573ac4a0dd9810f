"""The words of the system as plain data: submitter, band, lane, job, lease, and what verbs take and answer.

A *job* is one version of one piece of work, as the store keeps it. What never changes after a PUT (the
configuration) is `body`, bytes that the rules never look into. Times are whole microseconds since 1970.
"""

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Literal, NamedTuple

from maitred.core.output import ArtifactView, Part

DEFAULT_PRIORITY = 5
COMMAND = "command"
BLOCKED = "!"
LACKING = "$"


class Submitter(NamedTuple):
    """The user or team that a job belongs to; `user 7` and `team 7` are strangers."""

    type: str
    id: str

    def __str__(self) -> str:
        """Give the text used in keys: the type never holds a dot, so it reads back without doubt."""
        return f"{self.type}.{self.id}"

    @classmethod
    def read(cls, text: str) -> "Submitter":
        """Read what `str` wrote."""
        kind, _, name = text.partition(".")
        return cls(kind, name)


class Band(IntEnum):
    """Which part of the line a place stands in, first to last; interactive jobs never stand in line."""

    FRONT = 0
    IMMEDIATE = 1
    SCHEDULED = 2
    BULK = 3
    INTERACTIVE = 4

    @property
    def pooled(self) -> bool:
        """Tell whether places of this band are the submitter's, shared by its jobs of one lane."""
        return self in (Band.SCHEDULED, Band.BULK)


class Lane(NamedTuple):
    """Jobs that could replace each other: the same band, priority, class and need."""

    band: Band
    priority: int
    level: int
    need: str

    @classmethod
    def of(cls, band: Band, priority: int, level: int, need: str) -> "Lane":
        """Give the lane of such a job; in front and immediate, priority does not count."""
        return cls(band, priority if band.pooled else 0, level, need)

    @property
    def lacking(self) -> bool:
        """Whether its jobs have to be given space before they start."""
        return self.need.lstrip(BLOCKED).startswith(LACKING)

    @property
    def served(self) -> str:
        """The need that a worker must serve; what waits for a stop is served by nobody."""
        return self.need.removeprefix(LACKING)

    @property
    def bare(self) -> str:
        """The need alone, without what else its jobs have to wait for."""
        return self.need.removeprefix(BLOCKED).removeprefix(LACKING)

    def __str__(self) -> str:
        """Give the text used in keys; text order is band, priority, class."""
        return f"{self.band:d}.{self.priority:02d}.{self.level:02d}.{self.need}"

    @classmethod
    def read(cls, text: str) -> "Lane":
        """Read what `str` wrote."""
        band, priority, level, need = text.split(".", 3)
        return cls(Band(int(band)), int(priority), int(level), need)


class Phase(StrEnum):
    """Where a job is: in line, under a lease, set aside by a hold, or done with."""

    WAITING = "waiting"
    RUNNING = "running"
    HELD = "held"
    ENDED = "ended"


HoldKind = Literal["job", "batch", "submitter", "profile"]


class Held(NamedTuple):
    """One reason for which jobs are held: what is held (its kind and name), who did it, why, and when.

    The name is a job's or batch's id, a submitter's text or a profile; of a job's own hold it is its id.
    """

    kind: HoldKind
    name: str
    by: str
    reason: str
    at: int


class Run(NamedTuple):
    """One entry of the timeline: a start, and how it ended."""

    stage: int
    version: int
    attempt: int
    worker: str
    start: int
    end: int
    code: str


@dataclass(slots=True)
class Job:
    """One version of a job: the record that the store keeps.

    `record` is the sequence number it was made with, unique in the queue. `release` and `arrival` are those
    of its place: of its own one while it has it (`own`), else of the one it took last. `duration` is what it
    asked for; 0 is the cap of its class, or of the longest if it is elastic. While a run of the same job is
    being stopped it is `blocked`: it stands in line and does not start.

    `stage` is the number of the stage at which it runs or waits, 0 before the first start. `space` is what
    it needs of the queue's budget, `provisioned` tells whether it has it, `lacking` that it stands in line
    for it. `data` is what the stage before
    handed on, `identifiers` what stages said of it; both are opaque. `hold` is its own hold. An `exempt`
    job does not count against its submitter. `ledger` is its id in the ledger's tree, `status` the version
    of its state there. `progress` is what its present or last run said of how far it is, opaque; `artifacts`
    are the files that are kept of it. With a `callback` its submitter is told what becomes of it. It is
    cancelled when nobody watched it for the time `abandon`, unless that is 0.
    """

    record: int
    id: str
    version: int
    submitter: Submitter
    need: str
    body: bytes
    created_at: int
    band: Band = Band.SCHEDULED
    priority: int = DEFAULT_PRIORITY
    level: int = 1
    elastic: bool = True
    duration: int = 0
    blocked: bool = False
    phase: Phase = Phase.WAITING
    own: bool = False
    stage: int = 0
    attempt: int = 0
    unspent: int = 0
    retries: int = 0
    release: int = 0
    arrival: int = 0
    delay: int = 0
    recent: int | None = None
    expires_at: int = 0
    ended_at: int = 0
    previous: int = 0
    worker: str = ""
    code: str = ""
    message: str = ""
    result: bytes = b""
    timeline: list[Run] = field(default_factory=list)
    batch: str = ""
    profile: str = ""
    exempt: bool = False
    space: int = 0
    provisioned: bool = False
    lacking: bool = False
    data: bytes = b""
    identifiers: bytes = b""
    hold: Held | None = None
    ledger: str = ""
    status: int = 0
    progress: bytes = b""
    artifacts: tuple[ArtifactView, ...] = ()
    callback: bool = False
    abandon: int = 0

    @property
    def lane(self) -> Lane:
        """The lane that the job waits in; nobody serves the need of a blocked one."""
        return Lane.of(self.band, self.priority, self.level, self.lane_need(self.need))

    def lane_need(self, need: str) -> str:
        """Write a need as lanes name it, with what else the job has to wait for."""
        return (BLOCKED if self.blocked else "") + (LACKING if self.lacking else "") + need

    def state(self, stages: tuple[str, ...]) -> str:
        """Name the job's state: `pending` until its first start, then its stage, `held` or how it ended."""
        if self.phase is Phase.ENDED:
            return "failed" if self.code else "completed"
        if self.phase is Phase.HELD:
            return "held"
        return stages[self.stage - 1] if self.stage else "pending"


class Order(NamedTuple):
    """What a PUT asks of the store. `delay` in microseconds; None lets the queue's policy decide.

    With `policy_floor` the longer of the sent delay and the policy's holds, as for a submitter's key; for
    an `exempt` order, as of an operator's batch, no policy and no limit per submitter holds. An order for a
    `batch` carries the `label` that its report keeps, and, if a server expands it, the `token` of the
    batch's lock. One that may only create (`only_new`) passes over a key that the batch has. `callback` and
    `abandon` are those of a job.
    """

    id: str
    submitter: Submitter
    need: str
    body: bytes
    band: Band = Band.SCHEDULED
    priority: int = DEFAULT_PRIORITY
    level: int = 1
    elastic: bool = True
    duration: int = 0
    delay: int | None = None
    policy_floor: bool = False
    expires_at: int = 0
    batch: str = ""
    profile: str = ""
    exempt: bool = False
    only_new: bool = False
    label: bytes = b""
    token: bytes = b""
    ledger: str = ""
    status: int = 0
    callback: bool = False
    abandon: int = 0


Outcome = Literal["created", "updated", "upgraded", "next-version", "known"]


class Put(NamedTuple):
    """What became of one PUT that was accepted."""

    outcome: Outcome
    record: int
    version: int


Refusal = Literal[
    "no-class",
    "other-submitter",
    "longer-duration",
    "interactive",
    "unknown-handler",
    "full-total",
    "full-per_submitter",
    "no-batch",
    "sealed",
    "other-batch",
    "reporting",
    "lock-lost",
]


Denial = Literal["", "known", "paused", "per-submitter", "no-worker", "slots"]


class Admission(NamedTuple):
    """Whether an interactive job was let in: its record, or the code of why not."""

    record: int
    denied: Denial = ""


class Lease(NamedTuple):
    """The right to run a job: the record and the token that every write about it carries."""

    record: int
    token: bytes


class Start(NamedTuple):
    """A job handed to a worker: all that is needed to run it, and for how long it may, from its start on.

    `data` is what the stage before handed on, `identifiers` what stages said of the job so far.
    """

    lease: Lease
    id: str
    version: int
    attempt: int
    need: str
    body: bytes
    start: int
    duration: int
    data: bytes = b""
    identifiers: bytes = b""
    ledger: str = ""
    status: int = 0


class Stop(NamedTuple):
    """An order to a worker: end this work now. The reason is a stable code.

    `limit` is the time limit that the run has passed, 0 if time is not the reason.
    """

    lease: Lease
    code: str
    limit: int = 0


class Lower(NamedTuple):
    """An order to a worker: this run may take only so long, counted from its start; a code says why."""

    lease: Lease
    duration: int
    code: str


class Typed(NamedTuple):
    """What somebody typed for an interactive run, and the size of their terminal if that changed."""

    lease: Lease
    data: bytes
    size: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Wake:
    """A hint to a worker: look at the clock again, `next_at` has come forward."""


Message = Start | Stop | Lower | Typed | Wake


class Finish(NamedTuple):
    """What a worker says of a job that it ran: no code means that its stage is done.

    `result` is then handed on to the next stage, or is the job's result after the last. A `transient`
    failure is tried again after a while. A stage may also set priority, space needed and identifiers; None
    leaves them. `status` is the version of the job's state in the ledger's tree, where there is one. The
    run's last words are what it `said`.
    """

    lease: Lease
    code: str = ""
    message: str = ""
    result: bytes = b""
    transient: bool = False
    priority: int | None = None
    space: int | None = None
    identifiers: bytes | None = None
    status: int = 0
    said: tuple[Part, ...] = ()


class TakenUp(NamedTuple):
    """A run that was taken up in the ledger's tree, and the version of the job's state that this made."""

    lease: Lease
    status: int


Restored = Literal["made", "changed", "ignored"]


class Moment(NamedTuple):
    """The store's time, and the next moment at which something falls due, expires or is lost.

    Up to `idle_until` there is nothing to do for anybody, for clerks, couriers and the sweep neither, unless
    something is told before; None is no end of that. Only a tick looks for all of this.
    """

    now: int
    next_at: int | None
    idle_until: int | None = 0

    def wait(self, longest: float) -> float:
        """Give the seconds until that moment, at most `longest`."""
        if self.next_at is None:
            return longest
        return min(longest, max(0, self.next_at - self.now) / 1_000_000)


class Shift(NamedTuple):
    """What a worker's verb answers: which of its leases were lost, what it starts next, when to tick.

    A worker that is not `known` lost its lease, and with it all its jobs; it may join again.
    """

    lost: list[Lease]
    starts: list[Start]
    moment: Moment
    known: bool = True


class Place(NamedTuple):
    """A place in line. `owner` is the record of the only job that may take it, 0 if it is the submitter's."""

    lane: Lane
    release: int
    arrival: int
    submitter: Submitter
    owner: int

    @property
    def nonce(self) -> int | None:
        """The number by which a caller names the place; none for a job's own."""
        return None if self.owner else self.arrival

    def due(self, now: int) -> bool:
        """Tell whether the place can be taken: from its release time on, inclusive."""
        return not self.lane.band.pooled or self.release <= now

    def rank(self, now: int) -> tuple[int, ...]:
        """Give the sort key of line order: what is due in band order, then what is not by release."""
        if not self.due(now):
            return (1, self.release, self.arrival)
        if self.lane.band is Band.FRONT:
            return (0, self.lane.band, 0, -self.arrival)
        if self.lane.band is Band.IMMEDIATE:
            return (0, self.lane.band, 0, self.arrival)
        return (0, self.lane.band, self.lane.priority, self.release, self.arrival)


class Pause(NamedTuple):
    """Who paused a queue, why (empty if they did not say), and when."""

    by: str
    reason: str
    at: int


@dataclass(frozen=True, slots=True)
class View:
    """A job as a reader sees it: the record without its data, its place, and why it waits.

    `position` is 1 for the first in line, None if the job does not wait. `serving` counts the live workers
    that serve its need, `free` is the most free slots that any of them has. `started` is the start of its
    present run, `granted` how long that may take, `holding` the class whose units it holds. `limits` and
    `used` are the units of each level, and how many are taken. `paused` is its queue's pause, None while it
    is open. `holds` are the reasons that hold it, or will when its place comes up; `space_free` is what is
    left of the queue's space, None without a budget. `stopping` tells that it has ended and its run has not:
    that may still add to it.
    """

    job: Job
    position: int | None
    release: int | None
    nonce: int | None
    running_versions: tuple[int, ...]
    now: int
    paused: Pause | None
    serving: int
    free: int
    limits: tuple[int, ...] = ()
    used: tuple[int, ...] = ()
    started: int | None = None
    granted: int | None = None
    holding: int | None = None
    holds: tuple[Held, ...] = ()
    space_free: int | None = None
    stopping: bool = False
