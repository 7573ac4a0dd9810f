"""What must hold of a queue at every moment, checked on a snapshot.

Each rule is a function that yields what breaks it; a violation has a stable code and a sentence.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from maitred.core.batch import BUCKETS, BatchState, bucket_of
from maitred.core.classes import limits
from maitred.core.floor import SETTLED, Kind
from maitred.core.job import Phase
from maitred.core.output import ArtifactView
from maitred.core.sayings import PIECE_COST
from maitred.core.settings import Settings
from maitred.core.snapshot import HoldState, Snapshot, WorkerState, state_counts


class Violation(NamedTuple):
    """A rule that is broken, and where; `repaired` tells whether it was put right."""

    code: str
    text: str
    repaired: bool = False


def violations(snapshot: Snapshot, settings: Settings | None = None) -> list[Violation]:
    """List everything that is broken in a queue with these settings; nothing, if all is well."""
    settings = settings or Settings()
    found = [violation for rule in RULES for violation in rule(snapshot)]
    found += [violation for rule in FLOOR_RULES for violation in rule(snapshot, settings)]
    if snapshot.counts != state_counts(snapshot.jobs, settings.stages):
        found.append(Violation("counts", f"counts per state are {snapshot.counts}"))
    return found


def places(snapshot: Snapshot) -> Iterator[Violation]:
    """Every waiting job has one place: its own, or one of the stack that it stands in."""
    stacked = Counter(record for stack in snapshot.stacks.values() for record in stack)
    owners = Counter(place.owner for place in snapshot.places if place.owner)
    for record, job in snapshot.jobs.items():
        expected = 1 if job.phase is Phase.WAITING else 0
        if stacked[record] != (0 if job.own else expected) or owners[record] != (expected if job.own else 0):
            yield Violation("place", f"job {job.id!r} has {stacked[record]} + {owners[record]} places")
    for record in stacked.keys() | owners.keys():
        if record not in snapshot.jobs:
            yield Violation("place", f"record {record} stands in line and is not kept")


def stacks(snapshot: Snapshot) -> Iterator[Violation]:
    """Check that a submitter has as many places as jobs, lane by lane, and a nonce for each place."""
    pooled: dict[object, list[tuple[int, int]]] = {}
    for place in snapshot.places:
        if not place.owner:
            pooled.setdefault((place.lane, place.submitter), []).append((place.release, place.arrival))
    for pool in snapshot.stacks.keys() | snapshot.nonces.keys() | pooled.keys():
        jobs, nonces = snapshot.stacks.get(pool, []), snapshot.nonces.get(pool, [])  # type: ignore[call-overload]
        if sorted(pooled.get(pool, [])) != nonces or len(jobs) != len(nonces):
            yield Violation("nonces", f"{pool}: {len(jobs)} jobs, {len(nonces)} nonces, {pooled.get(pool)}")
        for record in jobs:
            job = snapshot.jobs.get(record)
            if not job or (job.lane, job.submitter) != pool:
                yield Violation("stack", f"{pool}: record {record} does not belong there")


def records(snapshot: Snapshot) -> Iterator[Violation]:
    """Every record has a state that fits where it is, and every job's newest version is found by its id."""
    held = {hold.record: hold for worker in snapshot.workers.values() for hold in worker.holds}
    for record, job in snapshot.jobs.items():
        hold = held.get(record)
        if (job.phase is Phase.RUNNING) != (hold is not None and hold.stopping not in SETTLED):
            yield Violation("state", f"job {job.id!r} is {job.phase} and its lease is {hold}")
        if job.id not in snapshot.newest:
            yield Violation("ids", f"job {job.id!r} is not found by its id")
    for id, record in snapshot.newest.items():
        if record not in snapshot.jobs or snapshot.jobs[record].id != id:
            yield Violation("ids", f"id {id!r} leads to record {record}, which is not its own")


def leases(snapshot: Snapshot) -> Iterator[Violation]:
    """Slots taken are leases, those being stopped included."""
    for name, worker in snapshot.workers.items():
        free = 0 if worker.draining else max(0, worker.slots - len(worker.holds))
        if worker.free != free:
            yield Violation("slots", f"worker {name!r} has {worker.free} free slots, and should have {free}")
        for hold in worker.holds:
            if hold.stopping not in SETTLED and hold.record not in snapshot.jobs:
                yield Violation("lease", f"worker {name!r} holds record {hold.record}, which is not kept")
    if snapshot.free != sum(worker.free for worker in snapshot.workers.values()):
        yield Violation("slots", f"{snapshot.free} slots are said to be free")


def counters(snapshot: Snapshot) -> Iterator[Violation]:
    """Counters and indexes say what the records say."""
    waiting = [job for job in snapshot.jobs.values() if job.phase is Phase.WAITING]
    if snapshot.waiting != len(waiting):
        yield Violation("waiting", f"{snapshot.waiting} jobs are said to wait, {len(waiting)} do")
    ended = sorted((job.ended_at, r) for r, job in snapshot.jobs.items() if job.phase is Phase.ENDED)
    if snapshot.ended != ended:
        yield Violation("ended", "the list of ended jobs is not what ended")
    if snapshot.expiring != sorted((job.expires_at, job.record) for job in waiting if job.expires_at):
        yield Violation("expiry", "the list of expiring jobs is not what will expire")
    own = sorted(job.record for job in waiting if job.own)
    if sorted(record for listed in snapshot.own.values() for record in listed) != own:
        yield Violation("own", "the list of jobs with a place of their own is not what has one")


def _runs(snapshot: Snapshot) -> Iterator[tuple[WorkerState, HoldState]]:
    return ((worker, hold) for worker in snapshot.workers.values() for hold in worker.holds)


def levels(snapshot: Snapshot, settings: Settings) -> Iterator[Violation]:
    """Units of each level are those that leases hold, and the limits follow from the live slots."""
    slots = sum(worker.slots for worker in snapshot.workers.values() if not worker.draining)
    if snapshot.slots != slots:
        yield Violation("slots", f"{snapshot.slots} slots are said to be live, {slots} are")
    held = [hold.level for _, hold in _runs(snapshot)]
    used = tuple(sum(level >= k for level in held) for k in range(1, len(settings.levels) + 1))
    if snapshot.used != used:
        yield Violation("levels", f"levels are said to have {snapshot.used} running jobs, they have {used}")


def stops(snapshot: Snapshot, settings: Settings) -> Iterator[Violation]:
    """Only elastic runs are cut, never before the fastest cap, and only interactive ones are halted."""
    fastest = settings.levels[0].cap
    for _, hold in _runs(snapshot):
        run = f"the run of record {hold.record}"
        if hold.stopping == "cut" and (
            hold.kind is not Kind.ELASTIC or snapshot.now < hold.start + min(fastest, hold.duration)
        ):
            yield Violation("cut", f"{run} was cut short of what it was sure of")
        if hold.lowered == "cut" and (hold.kind is not Kind.ELASTIC or hold.duration < fastest):
            yield Violation("cut", f"{run} was cut to {hold.duration} µs")
        if (hold.stopping == "halted") > (hold.kind is Kind.INTERACTIVE):
            yield Violation("halt", f"{run} was halted, and is not interactive")
    stopping = {hold.record for _, hold in _runs(snapshot) if hold.stopping}
    if snapshot.stops.keys() != stopping:
        yield Violation(
            "stops", f"stops of {sorted(snapshot.stops)} are noted, {sorted(stopping)} are under way"
        )
    blocked = {job.id for job in snapshot.jobs.values() if job.blocked}
    waiting = {job.id for job in snapshot.jobs.values() if job.phase is Phase.WAITING}
    if blocked != waiting & set(snapshot.stops.values()):
        yield Violation(
            "blocked", f"{sorted(blocked)} wait for a stop, {sorted(snapshot.stops.values())} stop"
        )


def candidates(snapshot: Snapshot, settings: Settings) -> Iterator[Violation]:
    """Check that the runs listed to give way, and as being stopped, are those that the leases name."""
    least = 1 if settings.elastic == "borrow" else 2
    giving_way: dict[int, list[int]] = {}
    credit = []
    for worker, hold in _runs(snapshot):
        if worker.draining:
            continue
        if hold.stopping:
            credit.append(hold.record)
        elif hold.kind is Kind.INTERACTIVE:
            giving_way.setdefault(0, []).append(hold.record)
        elif hold.kind is Kind.ELASTIC and hold.level >= least:
            giving_way.setdefault(hold.level, []).append(hold.record)
    if snapshot.credit != sorted(credit):
        yield Violation("credit", f"{snapshot.credit} are listed as being stopped, {sorted(credit)} are")
    if snapshot.giving_way != {level: sorted(records) for level, records in giving_way.items()}:
        yield Violation("elastic", f"{snapshot.giving_way} are listed to give way, {giving_way} can")


def idle(snapshot: Snapshot, settings: Settings) -> Iterator[Violation]:
    """No slot idles while a due job that fits waits."""
    if snapshot.paused:
        return
    free = [
        limit - used
        for limit, used in zip(limits(settings.levels, snapshot.slots), snapshot.used, strict=True)
    ]
    space_free, kept_back = settings.space - snapshot.space_used, False
    for place in snapshot.places:
        job = snapshot.jobs.get(place.owner)
        kept_back |= bool(place.lane.lacking and settings.space and job and job.space > space_free)
        if place.lane.lacking and kept_back:
            continue
        need = place.lane.served
        served = any(worker.free and need in worker.serves for worker in snapshot.workers.values())
        if place.due(snapshot.now) and served and all(units > 0 for units in free[1 : place.lane.level]):
            yield Violation("idle", f"a place in {place.lane} fits and waits")


def holds(snapshot: Snapshot) -> Iterator[Violation]:
    """Whoever is held has a reason: its own, or one that lists it, in force or just taken away."""
    kept = Counter(record for records in snapshot.kept.values() for record in records)
    for record, job in snapshot.jobs.items():
        listed = kept.pop(record, 0)
        if job.phase is Phase.HELD and not job.hold and not listed:
            yield Violation("held", f"job {job.id!r} is held and nothing holds it")
        if listed > 1 or (listed and job.phase is not Phase.HELD):
            yield Violation("held", f"job {job.id!r} is {job.phase} and {listed} holds list it")
    for record in kept:
        yield Violation("held", f"record {record} is listed as held and is not kept")
    for name in snapshot.kept:
        if name not in snapshot.holds and name not in snapshot.returning:
            yield Violation("held", f"jobs are held by {name!r}, which holds nobody")


def space(snapshot: Snapshot) -> Iterator[Violation]:
    """Space taken is that of the jobs that have it, and none of them has ended."""
    having = [job for job in snapshot.jobs.values() if job.provisioned]
    if snapshot.space_used != sum(job.space for job in having):
        yield Violation("space", f"{snapshot.space_used} bytes of space are said to be taken")
    for job in having:
        if job.phase is Phase.ENDED:
            yield Violation("space", f"job {job.id!r} has ended and has space")


def batches(snapshot: Snapshot) -> Iterator[Violation]:
    """Every batch counts its jobs (by their newest version), lists them, and is no further than they are."""
    mine = [job for _, job in sorted(snapshot.jobs.items()) if job.batch and not job.ledger]
    newest = {(job.batch, job.id): job for job in mine}
    found = Counter((job.batch, bucket_of(job)) for job in newest.values())
    for id, batch in snapshot.batches.items():
        deleted = sum(not row.record for row in batch.rows.values())
        counts = {bucket: found[(id, bucket)] for bucket in BUCKETS} | {"deleted": deleted}
        if batch.counts != counts:
            yield Violation("batch-counts", f"batch {id!r} counts {batch.counts}, it has {counts}")
        if batch.state is BatchState.PROCESSING and batch.sealed and not batch.unfinished:
            yield Violation("batch-state", f"batch {id!r} has ended and is not being reported")
        if batch.state is BatchState.REPORTING and (not batch.sealed or batch.unfinished):
            yield Violation("batch-state", f"batch {id!r} is being reported and has not ended")
        if (batch.state is BatchState.HELD) != (f"batch:{id}" in snapshot.holds):
            yield Violation("batch-state", f"batch {id!r} is {batch.state} and its hold says otherwise")
        for name, row in batch.rows.items():
            kept = snapshot.jobs.get(row.record)
            if row.record and (kept is None or kept.id != name or kept.batch != id):
                yield Violation("batch-row", f"batch {id!r} lists {name!r}, which is not its job")
    for job in mine:
        owner = snapshot.batches.get(job.batch)
        listed = owner.rows if owner else snapshot.trash.get(job.batch, {})
        if job.id not in listed:
            yield Violation("batch-row", f"job {job.id!r} is not listed by its batch {job.batch!r}")


def outputs(snapshot: Snapshot) -> Iterator[Violation]:
    """Check that what was said is whole and of records that are kept, and that those name what they left."""
    for record, spoken in snapshot.outputs.items():
        numbers = [chunk.number for chunk in spoken.chunks]
        size = sum(len(chunk.data) + PIECE_COST for chunk in spoken.chunks)
        if record not in snapshot.jobs:
            yield Violation("output", f"record {record} said something and is not kept")
        if numbers != list(range(spoken.first, spoken.last + 1)) or size != spoken.size:
            yield Violation("output", f"what record {record} said has gaps, or counts {spoken.size} bytes")
    named = {record: sorted(job.artifacts) for record, job in snapshot.jobs.items() if job.artifacts}
    found = {
        record: [ArtifactView(each.name, each.media_type, len(each.data)) for each in files]
        for record, files in snapshot.files.items()
    }
    for record in named.keys() | found.keys():
        if named.get(record) != found.get(record):
            yield Violation(
                "artifact", f"record {record} names {named.get(record)}, kept is {found.get(record)}"
            )


def notices(snapshot: Snapshot) -> Iterator[Violation]:
    """Notices are of jobs that are kept, and have their moment; jobs that ask for it are given up in time."""
    for id, pending in snapshot.notices.items():
        kept = [snapshot.jobs.get(each.record) for each in pending]
        if not pending or any(job is None or job.id != id for job in kept):
            yield Violation("notices", f"job {id!r} has notices of others")
    for id in snapshot.notices.keys() ^ snapshot.notices_due.keys():
        yield Violation("notices", f"job {id!r} has notices or a moment to tell them, not both")
    for id in snapshot.notice_locks.keys() - snapshot.notices.keys():
        yield Violation("notices", f"somebody tells what job {id!r} does not say")
    for record in snapshot.deliveries.keys() - snapshot.jobs.keys():
        yield Violation("notices", f"record {record} has a log of deliveries and is not kept")
    watched = {job.record for job in snapshot.jobs.values() if job.abandon and job.phase is not Phase.ENDED}
    for record in watched ^ snapshot.deadlines.keys():
        yield Violation("abandon", f"record {record} is given up though it does not ask, or never")


RULES: tuple[Callable[[Snapshot], Iterator[Violation]], ...] = (
    places,
    stacks,
    records,
    leases,
    counters,
    holds,
    space,
    batches,
    outputs,
    notices,
)
FLOOR_RULES: tuple[Callable[[Snapshot, Settings], Iterator[Violation]], ...] = (
    levels,
    stops,
    candidates,
    idle,
)
