"""A queue's whole state at one moment, as plain data that can be compared and checked."""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from maitred.core.batch import Batch, Row
from maitred.core.floor import Hold, Kind
from maitred.core.house import House
from maitred.core.job import Held, Job, Lane, Message, Phase, Place, Submitter, Wake
from maitred.core.notices import Delivery, NoticeLock, Pending
from maitred.core.output import Artifact
from maitred.core.sayings import Spoken


class HoldState(NamedTuple):
    """A lease as it is kept."""

    record: int
    token: bytes
    start: int
    number: int
    level: int
    kind: Kind
    duration: int
    confirmed: bool
    lowered: str
    stopping: str

    @classmethod
    def of(cls, hold: Hold) -> "HoldState":
        """Copy a lease of the reference."""
        return cls(*(getattr(hold, name) for name in cls._fields))


class WorkerState(NamedTuple):
    """A worker as it is kept, with its leases in the order of their start."""

    slots: int
    free: int
    draining: bool
    lease_end: int
    serves: frozenset[str]
    holds: tuple[HoldState, ...]
    about: bytes = b""


Pool = tuple[Lane, Submitter]


@dataclass
class Snapshot:
    """Everything that a queue keeps. `nonces` are (release, arrival) by rank; stacks have the top first.

    `giving_way` lists by class (0: interactive) the runs that can be made to give way, `credit` those that
    are being stopped on workers that go on, `stops` the jobs of all runs that are being stopped. `holds` are
    those of many by name, `kept` the jobs that each of them keeps, `returning` those that were taken away.
    `outputs` and `files` are what runs said and left behind, by record; files are sorted by name.
    `notices` are what is to be told, by job id, with when the first is due and who tells it; `deliveries` how
    that went, by record. `deadlines` are when jobs are given up that nobody watches.
    """

    now: int
    seq: int
    paused: bool
    free: int
    waiting: int
    counts: dict[str, int] = field(default_factory=dict)
    jobs: dict[int, Job] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)
    places: list[Place] = field(default_factory=list)
    stacks: dict[Pool, list[int]] = field(default_factory=dict)
    nonces: dict[Pool, list[tuple[int, int]]] = field(default_factory=dict)
    own: dict[Submitter, list[int]] = field(default_factory=dict)
    workers: dict[str, WorkerState] = field(default_factory=dict)
    inboxes: dict[str, list[Message]] = field(default_factory=dict)
    ended: list[tuple[int, int]] = field(default_factory=list)
    expiring: list[tuple[int, int]] = field(default_factory=list)
    recent: dict[Submitter, list[int]] = field(default_factory=dict)
    slots: int = 0
    used: tuple[int, ...] = ()
    giving_way: dict[int, list[int]] = field(default_factory=dict)
    credit: list[int] = field(default_factory=list)
    stops: dict[int, str] = field(default_factory=dict)
    holds: dict[str, Held] = field(default_factory=dict)
    kept: dict[str, list[int]] = field(default_factory=dict)
    returning: list[str] = field(default_factory=list)
    space_used: int = 0
    batches: dict[str, Batch] = field(default_factory=dict)
    trash: dict[str, dict[str, Row]] = field(default_factory=dict)
    batches_made: int = 0
    unsaid: list[int] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    outputs: dict[int, Spoken] = field(default_factory=dict)
    files: dict[int, list[Artifact]] = field(default_factory=dict)
    notices: dict[str, list[Pending]] = field(default_factory=dict)
    notices_due: dict[str, int] = field(default_factory=dict)
    notice_locks: dict[str, NoticeLock] = field(default_factory=dict)
    deliveries: dict[int, list[Delivery]] = field(default_factory=dict)
    deadlines: dict[int, int] = field(default_factory=dict)


def state_counts(jobs: dict[int, Job], stages: tuple[str, ...]) -> dict[str, int]:
    """Count the jobs in each state, all states named."""
    counts = dict.fromkeys(("pending", "held", "failed", "completed", *stages), 0)
    for job in jobs.values():
        counts[job.state(stages)] += 1
    return counts


def take_snapshot(house: House) -> Snapshot:
    """Copy the reference's state."""
    jobs = {record: _copy(job) for record, job in house.jobs.items()}
    waiting = [job for job in jobs.values() if job.phase is Phase.WAITING]
    own: dict[Submitter, list[int]] = {}
    for job in sorted(waiting, key=lambda job: (job.arrival, job.record)):
        if job.own:
            own.setdefault(job.submitter, []).append(job.record)
    return Snapshot(
        now=house.now,
        seq=house.seq,
        paused=house.paused is not None,
        free=sum(worker.free for worker in house.floor.workers.values()),
        waiting=len(waiting),
        counts=state_counts(jobs, house.settings.stages),
        jobs=jobs,
        newest=dict(house.newest),
        places=house.line.in_order(house.now),
        stacks={key: list(stack) for key, stack in house.line.stacks.items()},
        nonces={key: [(p.release, p.arrival) for p in pool] for key, pool in house.line.pools.items()},
        own=own,
        workers={
            worker.name: WorkerState(
                worker.slots,
                worker.free,
                worker.draining,
                worker.lease_end,
                worker.serves,
                tuple(HoldState.of(h) for h in sorted(worker.holds.values(), key=lambda h: h.number)),
                worker.about,
            )
            for worker in house.floor.workers.values()
        },
        inboxes={name: kept for name, messages in house.inboxes.items() if (kept := without_wakes(messages))},
        ended=sorted((job.ended_at, job.record) for job in jobs.values() if job.phase is Phase.ENDED),
        expiring=sorted((job.expires_at, job.record) for job in waiting if job.expires_at),
        recent={who: list(times) for who, times in house.recent.times.items() if times},
        slots=house.floor.slots,
        used=tuple(house.floor.used),
        giving_way=_giving_way(house),
        credit=sorted(hold.record for _, hold in house.floor.holds(stopping=True)),
        stops=dict(house.stops),
        holds=dict(house.holds.flags),
        kept={name: sorted(records) for name, records in house.holds.kept.items()},
        returning=list(house.holds.returning),
        space_used=house.space.used,
        batches={id: copy_batch(batch) for id, batch in house.batches.all.items()},
        trash={id: dict(rows) for id, rows in house.batches.trash.items()},
        batches_made=house.batches.made,
        unsaid=sorted(house.unsaid),
        gone=list(house.gone),
        outputs={record: spoken.copy() for record, spoken in house.sayings.streams.items()},
        files={record: sorted(files) for record, files in house.sayings.files.items()},
        notices={id: list(pending) for id, pending in house.outbox.pending.items()},
        notices_due=dict(house.outbox.due),
        notice_locks=dict(house.outbox.locks),
        deliveries={record: list(tries) for record, tries in house.outbox.log.items()},
        deadlines=dict(house.deadlines),
    )


def _giving_way(house: House) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for _, hold in house.floor.interactives():
        found.setdefault(0, []).append(hold.record)
    for _, hold in house.floor.elastics():
        found.setdefault(hold.level, []).append(hold.record)
    return {level: sorted(records) for level, records in found.items()}


def without_wakes(messages: list[Message]) -> list[Message]:
    """Leave out hints about the clock; stores may give them at other times."""
    return [message for message in messages if not isinstance(message, Wake)]


def copy_batch(batch: Batch) -> Batch:
    """Copy a batch, so that what happens to it later is not seen."""
    return replace(batch, counts=dict(batch.counts), rows=dict(batch.rows))


def _copy(job: Job) -> Job:
    fields = {name: getattr(job, name) for name in Job.__slots__}
    return Job(**{**fields, "timeline": list(job.timeline)})
