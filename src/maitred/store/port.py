"""What a store must do for one queue: one method a verb, each atomic.

The port is private: services and workers use it, users do not. A store raises the errors of `maitred.errors`
and nothing else. Time comes from the store's own clock unless a `clock` was given to it, as tests do.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from maitred.core.batch import Batch, BatchOrder, BatchPut, BatchState, Errand, RowView
from maitred.core.events import Entry
from maitred.core.invariants import Violation
from maitred.core.job import (
    Admission,
    Finish,
    Held,
    HoldKind,
    Job,
    Lease,
    Message,
    Moment,
    Order,
    Pause,
    Put,
    Refusal,
    Restored,
    Shift,
    Submitter,
    TakenUp,
    View,
)
from maitred.core.notices import Delivery, NoticeErrand
from maitred.core.occupancy import Running
from maitred.core.output import Artifact, Output, Saying
from maitred.core.settings import Settings
from maitred.core.snapshot import Snapshot

Clock = Callable[[], int]
Dice = Callable[[], bytes]
Progress = Callable[[str, int], None]


@dataclass(frozen=True, slots=True)
class LinePage:
    """Some waiting jobs in line order; `next` is the cursor of the page after, None at the end."""

    views: list[View]
    next: bytes | None
    total: int


@dataclass(frozen=True, slots=True)
class Records:
    """Jobs by record, and the number of the last entry of `news` at that moment."""

    views: dict[int, View]
    number: int


@dataclass(frozen=True, slots=True)
class EndedPage:
    """Some ended jobs, last first."""

    views: list[View]
    total: int


@dataclass(frozen=True, slots=True)
class HeldPage:
    """Some held jobs, oldest first."""

    views: list[View]
    total: int


@dataclass(frozen=True, slots=True)
class Unsaid:
    """What the ledger's tree has to hear: jobs whose state changed here, and ids of those that were swept."""

    views: list[View]
    gone: list[str]


@dataclass(frozen=True, slots=True)
class BatchPage:
    """Some batches, newest first, without rows and reports; `next` is the cursor of the page after.

    `total` is None where only those in one state are shown.
    """

    batches: list[Batch]
    next: str | None
    total: int | None


@dataclass(frozen=True, slots=True)
class RowPage:
    """Some rows of a batch in the order in which they came in; `next` is None at the end."""

    rows: list[RowView]
    next: int | None


@dataclass(frozen=True, slots=True)
class SubmitterView:
    """What one submitter has in line."""

    jobs: list[str]
    places: list[tuple[int, int]]
    recent: int


@dataclass(frozen=True, slots=True)
class WorkerView:
    """A worker as operators see it.

    `about` is JSON, an object: what the worker says about itself. Its `sandbox` lists what that enforces.
    """

    name: str
    slots: int
    busy: int
    draining: bool
    serves: tuple[str, ...]
    lease_end: int
    about: bytes = b""


@dataclass(frozen=True, slots=True)
class Status:
    """A queue as operators see it; `counts` is by state, `paused` tells who paused it and why.

    `counts` counts every version that is kept, `jobs` each job once. `limits` and `used` are the units of
    each level, and how many of them running jobs hold. `holds` are those of submitters, profiles and batches.
    `space_used` is what is taken of the budget, 0 in a queue without one.
    """

    settings: Settings
    now: int
    counts: dict[str, int]
    jobs: int
    waiting: int
    free: int
    paused: Pause | None
    workers: list[WorkerView]
    limits: tuple[int, ...] = ()
    used: tuple[int, ...] = ()
    holds: tuple[Held, ...] = ()
    space_used: int = 0


@dataclass(frozen=True, slots=True)
class Survey:
    """The floor and the lanes of a queue at one moment, for a server that foresees starts.

    What changes afterwards is told in `news` after the entry with this id and number. `crews` are the sets of
    needs that live workers serve, `lanes` counts the places in each lane, `runs` are by record.
    """

    now: int
    settings: Settings
    paused: Pause | None
    limits: tuple[int, ...]
    used: tuple[int, ...]
    waiting: int
    crews: tuple[tuple[str, ...], ...]
    lanes: dict[str, int]
    runs: dict[int, Running]
    last_id: str
    last_number: int


class Store(Protocol):
    """The store of one queue."""

    queue: str

    async def configure(self, settings: Settings) -> None:
        """Make the queue, or give it new settings; SettingsForbidden where the waiting jobs forbid it."""

    async def settings(self) -> Settings:
        """Show the queue's settings; cheap enough for every worker to look with each renewal."""

    async def put(self, orders: Sequence[Order]) -> list[Put | Refusal]:
        """Create or update jobs in turn; a refused one changes nothing."""

    async def put_shown(self, order: Order) -> tuple[Put | Refusal, View | None]:
        """Create or update a job and show it as it is then."""

    async def release(self, id: str, nonce: int | None = None) -> None:
        """Move a scheduled or bulk job to the front."""

    async def delay(self, id: str, nonce: int | None = None) -> None:
        """Move a scheduled or bulk job behind all others of its band and priority."""

    async def remove(self, id: str) -> None:
        """Delete all versions of a job."""

    async def cancel(self, id: str, message: str) -> None:
        """End all versions that have not ended."""

    async def shorten(self, id: str, duration: int) -> None:
        """Lower the duration of a waiting or running job; AlreadyEnded, or LongerDuration."""

    async def admit(self, order: Order) -> Admission:
        """Start an interactive job at once on a free slot, or deny it and keep nothing of it."""

    async def prioritise(self, id: str, priority: int) -> None:
        """Give a waiting job another priority, and the place of its own that goes with it; NotWaiting."""

    async def retry(self, id: str) -> None:
        """Let a failed job go on at the stage that failed; NotFailed, Interactive or BatchReporting."""

    async def hold(self, kind: HoldKind, name: str, by: str, reason: str) -> None:
        """Hold a job at once, or before its next stage; of many, whoever's place comes up or stage ends.

        UnknownJob, AlreadyEnded or Interactive of a job; UnknownBatch or IllegalMove of a batch.
        """

    async def unhold(self, kind: HoldKind, name: str) -> None:
        """Take a hold away; whoever has no other reason to be held comes back, a bounded number per step.

        NotHeld of a job or a batch that has no hold of its own.
        """

    async def create_batch(self, order: BatchOrder) -> BatchPut:
        """Make a batch, or give the submitter's with that external id; OtherSubmitter if it is another's.

        Jobs are added by `put` with the batch's id in their orders.
        """

    async def seal_batch(self, id: str, *, token: bytes = b"", fault: str = "") -> None:
        """Close a batch; a server that expanded it has its lock's `token`, and may say why it could not.

        Without a token a batch that is being expanded is only told to be sealed after that. UnknownBatch,
        BatchSealed or LockLost.
        """

    async def lock_batch(self, owner: str, token: bytes) -> Errand | None:
        """Lock the oldest batch that has work and no live lock, for as long as a lease lasts.

        Its last report comes with it only if that is to be sent.
        """

    async def keep_batch(self, id: str, token: bytes) -> None:
        """Keep a lock for as long as a lease from now; LockLost."""

    async def unlock_batch(self, id: str, token: bytes) -> None:
        """Give a lock up; only its owner can, and one that is lost is no error."""

    async def mark_rows(self, id: str, token: bytes, reported: Sequence[tuple[str, str]]) -> None:
        """Note the state in which each of these jobs, by id, is being reported; LockLost."""

    async def report_batch(self, id: str, token: bytes, report: bytes, *, send: bool) -> BatchState:
        """Store a report and end the batch as its jobs did, in one step; LockLost, or IllegalMove."""

    async def sent_batch(self, id: str, token: bytes, try_again_in: int | None) -> None:
        """Note that the last report was delivered or given up (None), or when to try again; LockLost."""

    async def update_batch(self, id: str) -> None:
        """Ask for an update report of a failed batch; UnknownBatch or IllegalMove."""

    async def remove_batch(self, id: str) -> None:
        """Delete a batch with its jobs; UnknownBatch, BatchUnfinished or BatchReporting.

        It is unknown at once; what is left of a large one goes with the ticks.
        """

    async def batch(self, id: str) -> Batch | None:
        """Show a batch with its last report, without its rows."""

    async def batches(
        self,
        state: str | None = None,
        external_id: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> BatchPage:
        """Show batches, newest first."""

    async def batch_rows(self, id: str, after: int, limit: int) -> RowPage:
        """Show the jobs of a batch, from the beginning with 0; UnknownBatch."""

    async def restore(self, jobs: Sequence[Job]) -> list[Restored]:
        """Take in jobs as the ledger's tree has them, unless what is known here is as new.

        Each names its ledger id and the version of its state; its phase is waiting, held or ended.
        """

    async def note_status(self, worker: str, taken: Sequence[TakenUp]) -> list[Lease]:
        """Note the versions that a worker made by taking jobs up in the tree; give the lost leases."""

    async def unsaid(self, limit: int) -> Unsaid:
        """Show what was decided here and the ledger's tree has not heard of yet."""

    async def said(self, record: int, state: str, status: int) -> None:
        """Note that the tree has heard that a job is in this state, with the version that this made."""

    async def forgotten(self, ledger_ids: Sequence[str]) -> None:
        """Note that the tree has forgotten these jobs, which were swept here."""

    async def attend(self, ids: Sequence[str]) -> None:
        """Note that somebody watches these jobs now: the time after which they are given up begins anew."""

    async def lock_notices(self, owner: str, token: bytes, limit: int) -> list[NoticeErrand]:
        """Lock the first notice of jobs where that is due and not locked, for as long as a try may take."""

    async def told_notice(self, record: int, number: int, token: bytes, delivery: Delivery) -> None:
        """Log a try at a notice: it is tried again, or it is done and the job's next is due; LockLost."""

    async def deliveries(self, id: str, version: int | None = None) -> list[Delivery] | None:
        """Show the last tries at the notices of a job, oldest first; None if there is no such job."""

    async def held(self, offset: int, limit: int) -> HeldPage:
        """Show the jobs that are held."""

    async def pause(self, by: str, reason: str) -> None:
        """Start nothing more."""

    async def resume(self) -> None:
        """Start again."""

    async def join(self, worker: str, slots: int, serves: Sequence[str], about: bytes = b"") -> Shift:
        """Let a worker in; `about` is JSON, what it says about itself."""

    async def take(self, worker: str) -> Shift:
        """Give the worker what it has room for."""

    async def finish(self, worker: str, results: Sequence[Finish]) -> Shift:
        """End jobs and give the worker the next ones."""

    async def hand_back(self, worker: str, leases: Sequence[Lease]) -> Shift:
        """Put jobs back at the front."""

    async def renew(self, worker: str, held: Sequence[Lease]) -> Shift:
        """Extend the worker's lease."""

    async def leave(self, worker: str) -> Shift:
        """Take the worker's free slots off the floor."""

    async def park(self, worker: str, timeout: float) -> list[Message]:
        """Wait for messages in the worker's inbox, at most `timeout` seconds."""

    async def say(self, worker: str, sayings: Sequence[Saying]) -> list[Lease]:
        """Keep what runs say, bounded for each version by the queue's `output_limit`; give the lost leases.

        A `progress` part becomes the job's progress too.
        """

    async def output(self, id: str, version: int | None, after: int, limit: int) -> Output | None:
        """Show what a job said after the piece with this number; None if there is no such job."""

    async def keep(self, worker: str, lease: Lease, artifacts: Sequence[Artifact]) -> None:
        """Keep these files of a run's version of its job, and no others; LeaseLost or TooLarge."""

    async def artifact(self, id: str, version: int | None, name: str) -> Artifact | None:
        """Give a file that is kept of a job."""

    async def type_in(self, record: int, data: bytes, size: tuple[int, int] | None) -> bool:
        """Tell the worker of a run what somebody types for it, and the size of their terminal.

        False if the worker has too much to read already: try again later. NotRunning.
        """

    async def tick(self) -> Moment:
        """Do what the clock asks for; answer the next moment that matters."""

    async def sweep(self, limit: int) -> int:
        """Forget at most `limit` jobs that ended longer ago than the retention."""

    async def read(self, ids: Sequence[str], version: int | None = None) -> list[View | None]:
        """Show jobs by id."""

    async def records(self, records: Sequence[int]) -> Records:
        """Show jobs by their records, as events name them; what is gone is left out."""

    async def running(self) -> list[View]:
        """Show the jobs that run, in the order of their starts."""

    async def line(self, cursor: bytes | None, limit: int) -> LinePage:
        """Show waiting jobs in line order."""

    async def ended(self, offset: int, limit: int) -> EndedPage:
        """Show ended jobs, last first."""

    async def submitter(self, submitter: Submitter, limit: int = 5_000) -> SubmitterView:
        """Show what one submitter has in line."""

    async def survey(self, listen: float) -> Survey:
        """Show floor and lanes at one moment, and tell what changes for so many seconds from now on."""

    async def places(self, lane: str, after: bytes, limit: int) -> list[bytes]:
        """Give the order of the places of a lane that come after one of them, 16 bytes each."""

    async def news(self, after: str, timeout: float) -> list[Entry]:
        """Wait for what changed after the entry with this id."""

    async def status(self) -> Status:
        """Show the queue."""

    async def check(self, *, repair: bool = False, progress: Progress | None = None) -> list[Violation]:
        """Look for broken invariants in short steps, and repair what can be repaired if asked."""

    async def snapshot(self) -> Snapshot:
        """Give all state at one moment, for small queues and for tests."""


# How many changes the audit log keeps, at least.
MOST_NOTES = 50_000


class Keyring(Protocol):
    """The API keys of one place: a record for each by its id, in bytes that the store does not read.

    Beside them is the audit log: who did what.
    """

    async def all(self) -> dict[str, bytes]:
        """Give all records by id."""

    async def get(self, id: str) -> bytes | None:
        """Give one record; None if there is none."""

    async def change(self, id: str, old: bytes | None, new: bytes | None) -> bool:
        """Put a new record in the place of an old one in one step; None is no record.

        False if the old one is not what is there; then nothing was changed.
        """

    async def note(self, notes: Sequence[bytes]) -> None:
        """Add to the audit log what was done, in bytes that the store does not read; old ones go."""

    async def notes(self, before: str | None, limit: int) -> list[tuple[str, bytes]]:
        """Give the last notes, newest first, or those before one: each with its id, `MILLISECONDS-NUMBER`."""

    async def noted(self) -> int:
        """Count the notes that are kept."""


class ScriptTime(NamedTuple):
    """How many scripts a server has run since it started, and how long they took in all."""

    calls: int
    seconds: float


# Hears of each call of a store: its verb, how many seconds it took, and why it failed, empty if it did not.
CallListener = Callable[[str, float, str], None]


class Stores(Protocol):
    """All queues of one place, and the keys of those who call."""

    @property
    def keyring(self) -> Keyring:
        """The API keys; they belong to no queue."""

    def queue(self, name: str) -> Store:
        """Give the store of one queue; it need not exist yet."""

    async def names(self) -> list[str]:
        """Name the queues that were configured."""

    async def ping(self) -> None:
        """Raise StoreUnavailable unless the store answers."""

    def on_call(self, listener: CallListener) -> None:
        """Tell this of each call from now on; a store without a server has none to tell of."""

    async def script_time(self) -> ScriptTime | None:
        """Tell how busy the server is with scripts, of all who use it; None where it cannot tell."""

    async def close(self) -> None:
        """Give back connections."""


__all__ = [
    "MOST_NOTES",
    "BatchPage",
    "CallListener",
    "Clock",
    "Dice",
    "EndedPage",
    "HeldPage",
    "Keyring",
    "LinePage",
    "Progress",
    "Records",
    "RowPage",
    "ScriptTime",
    "Status",
    "Store",
    "Stores",
    "SubmitterView",
    "Survey",
    "Unsaid",
    "WorkerView",
]
