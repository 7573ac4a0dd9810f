"""What changes in a queue, as listening servers are told of it.

A server that foresees starts keeps its own picture of the line and the floor: it looks once, and then follows
these. They can be told again without harm: a place that is there already is not added twice, and what was
taken is named by the last place of it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice, takewhile
from typing import NamedTuple

from maitred.core.floor import Kind
from maitred.core.job import Band, Job, Phase, Place
from maitred.core.snapshot import HoldState, Snapshot


class Added(NamedTuple):
    """A place stands in a lane; `order` sorts it among the others there."""

    lane: str
    order: bytes


class Removed(NamedTuple):
    """A place left its lane."""

    lane: str
    order: bytes


class Taken(NamedTuple):
    """All places of a lane up to this one were taken."""

    lane: str
    through: bytes


class Started(NamedTuple):
    """A run began: how long it may take, and the class whose units it holds."""

    record: int
    version: int
    attempt: int
    level: int
    kind: Kind
    start: int
    duration: int
    worker: str
    need: str


class Lowered(NamedTuple):
    """A run may take only so long, and holds no more than this class."""

    record: int
    level: int
    duration: int


class Stopping(NamedTuple):
    """A run was told to stop; it holds its units until that is confirmed."""

    record: int


class Freed(NamedTuple):
    """The slot and the units of a run came back."""

    record: int


class Returned(NamedTuple):
    """A run ended and its work is not done: it was `lost`, `handed-back`, or failed and is tried again."""

    record: int
    code: str


class Ended(NamedTuple):
    """A job ended; no code means completed."""

    record: int
    code: str


class Changed(NamedTuple):
    """A job was submitted, changed, moved, or waits again; it is in this phase and stage from then on."""

    record: int
    phase: Phase
    stage: int


class Said(NamedTuple):
    """A run said something: the pieces from `first` to `last`."""

    record: int
    first: int
    last: int


class Deleted(NamedTuple):
    """A job's record is gone, so its id is told."""

    record: int
    id: str


class Versioned(NamedTuple):
    """A job has a newer version."""

    older: int
    newer: int


class HouseChanged(NamedTuple):
    """Workers, settings, holds or the pause changed: better look again."""


class Noticed(NamedTuple):
    """A job's submitter is to be told something."""


class BatchChanged(NamedTuple):
    """A batch was made, changed or deleted."""

    id: str


Event = (
    Added
    | Removed
    | Taken
    | Started
    | Lowered
    | Stopping
    | Freed
    | Returned
    | Ended
    | Changed
    | Said
    | Deleted
    | Versioned
    | HouseChanged
    | BatchChanged
    | Noticed
)


class Entry(NamedTuple):
    """What one call changed: the id of the entry, its number, the store's time, and the changes."""

    id: str
    number: int
    now: int
    events: list[Event]


TOP = 1 << 53
# The code of a run that is stopped since the ledger's tree has its job elsewhere.
MOVED = "moved"


def order_of(place: Place) -> bytes:
    """Give the bytes that sort a place within its lane."""
    first = place.release
    if place.lane.band is Band.FRONT:
        first = TOP - place.arrival
    elif place.lane.band is Band.IMMEDIATE:
        first = place.arrival
    return first.to_bytes(8, "big") + place.arrival.to_bytes(8, "big")


def changes(before: Snapshot, after: Snapshot) -> list[Event]:
    """Tell what happened between two states, as a store that compares them would tell it."""
    found: list[Event] = []
    old, new = set(before.places), set(after.places)
    runs = list(_runs(before, after))
    starts = Counter(_lane(before, after, event) for event in runs if isinstance(event, Started))
    found += _left(old, old - new, starts)
    found += [Added(str(place.lane), order_of(place)) for place in new - old]
    found += runs
    found += _jobs(before, after)
    found += [Deleted(record, job.id) for record, job in before.jobs.items() if record not in after.jobs]
    for record, spoken in after.outputs.items():
        known = before.outputs[record].last if record in before.outputs else 0
        if known != spoken.last:
            found.append(Said(record, known + 1, spoken.last))
    if (before.paused, before.holds, _crews(before)) != (after.paused, after.holds, _crews(after)):
        found.append(HouseChanged())
    batches = before.batches | after.batches
    found += [BatchChanged(id) for id in batches if before.batches.get(id) != after.batches.get(id)]
    told = {each.notice.number for pending in before.notices.values() for each in pending}
    if any(each.notice.number not in told for pending in after.notices.values() for each in pending):
        found.append(Noticed())
    return found


def _left(line: set[Place], gone: set[Place], starts: Mapping[str, int]) -> Iterator[Event]:
    """Tell which places were taken, as many of a lane's first ones as jobs of it started, and which left."""
    for lane in {place.lane for place in gone}:
        orders = sorted(order_of(place) for place in line if place.lane == lane)
        left = {order_of(place) for place in gone if place.lane == lane}
        taken = list(islice(takewhile(left.__contains__, orders), starts.get(str(lane), 0)))
        if taken:
            yield Taken(str(lane), taken[-1])
        yield from (Removed(str(lane), order) for order in left.difference(taken))


def _lane(before: Snapshot, after: Snapshot, event: Started) -> str:
    """Give the lane that a run came from: there it may have stood for space, which it has now."""
    was, job = before.jobs.get(event.record), after.jobs[event.record]
    return str(replace(job, lacking=was is not None and was.lacking).lane)


def _runs(before: Snapshot, after: Snapshot) -> Iterator[Event]:
    held, holds = _holds(before), _holds(after)
    for record, hold in held.items():
        if record not in holds or holds[record].token != hold.token:
            yield Freed(record)
    for record, hold in holds.items():
        known = held.get(record)
        if known is None or known.token != hold.token:
            yield _started(after, hold)
        elif (known.level, known.duration) != (hold.level, hold.duration):
            yield Lowered(record, hold.level, hold.duration)
        if hold.stopping and not (known and known.stopping):
            yield Stopping(record)


def _jobs(before: Snapshot, after: Snapshot) -> Iterator[Event]:
    for record, job in after.jobs.items():
        was = before.jobs.get(record)
        if was == job:
            continue
        yield from _returned(was, job)
        if job.phase is Phase.ENDED:
            if was is None or was.ended_at != job.ended_at:
                yield Ended(record, job.code)
        elif job.phase is not Phase.RUNNING:
            yield Changed(record, job.phase, job.stage)
        older = after.jobs.get(job.previous)
        if was is None and older and older.phase is not Phase.ENDED:
            yield Versioned(older.record, record)


def _returned(was: Job | None, job: Job) -> Iterator[Event]:
    """Tell of runs that did not do their work; where a run's failure is its job's end, that says it."""
    known = len(was.timeline) if was else 0
    for run in job.timeline[known:]:
        if run.code not in ("", MOVED) and not (job.phase is Phase.ENDED and job.code == run.code):
            yield Returned(job.record, run.code)


def _holds(snapshot: Snapshot) -> dict[int, HoldState]:
    return {hold.record: hold for worker in snapshot.workers.values() for hold in worker.holds}


def _crews(snapshot: Snapshot) -> object:
    return {name: (w.slots, w.draining, w.serves) for name, w in snapshot.workers.items()}


def _started(snapshot: Snapshot, hold: HoldState) -> Started:
    job = snapshot.jobs[hold.record]
    return Started(
        hold.record,
        job.version,
        job.attempt,
        hold.level,
        hold.kind,
        hold.start,
        hold.duration,
        job.worker,
        job.need,
    )
