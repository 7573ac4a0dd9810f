"""What must hold of the tree, looked for on a live store: job, index entry and batch bucket say the same.

Nothing can be read at one moment, so whatever looks wrong is looked at again, and only what is wrong in the
same way both times, with nothing changed between, is named. Each kind of fault has a code of its own.

| code | what is wrong |
|---|---|
| `tree-status` | a job or a batch cannot be read |
| `tree-index-missing`, `-double`, `-misplaced` | a job has no index entry, several, or a wrong one |
| `tree-index-stray` | an index entry names no job |
| `tree-bucket-missing`, `-double`, `-misplaced` | the same of a job's place in the buckets of its batch |
| `tree-bucket-stray` | a bucket names a job that is not there, or not of this batch |
| `tree-job-missing` | index and bucket name a job that is not there |
| `tree-batch-missing` | a job belongs to a batch that is not there |
| `tree-batch-early` | a batch is completed, and jobs of it have not ended |
| `tree-count` | a batch has not as many keys as it counts jobs |
| `tree-uuid-missing`, `-stray` | an external id does not find its batch, or finds none |
| `tree-lock` | a lock is not bound to a session, so nobody alive has it |
| `tree-orphan` | an item has had no status for an hour: a crash left it |
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from maitred.core.batch import BatchState
from maitred.core.invariants import Violation
from maitred.store.zookeeper.ledger import Ledger
from maitred.store.zookeeper.records import READ_TOGETHER, BatchEntry, JobEntry, Unreadable
from maitred.store.zookeeper.tree import BID, DELETED, JID, entry_name, escape, is_item, read_entry, unescape

Progress = Callable[[str, int], None]


class Fault(NamedTuple):
    """One thing that looks wrong; `mark` changes when somebody is at work there."""

    code: str
    text: str
    mark: object = None


@dataclass(slots=True)
class Survey:
    """All that the tree says, read bit by bit."""

    entries: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    jobs: dict[str, JobEntry | Unreadable | None] = field(default_factory=dict)
    batches: dict[str, BatchEntry | Unreadable | None] = field(default_factory=dict)
    buckets: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    keys: dict[str, int] = field(default_factory=dict)
    uuids: dict[str, str] = field(default_factory=dict)
    locks: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)


async def check(ledger: Ledger, progress: Progress | None = None) -> list[Violation]:
    """List everything that is broken in the tree; nothing, if all is well."""
    first = set(faults(ledger, await survey(ledger, progress)))
    if not first:
        return []
    again = faults(ledger, await survey(ledger, progress))
    return [Violation(fault.code, fault.text) for fault in again if fault in first]


async def survey(ledger: Ledger, progress: Progress | None = None) -> Survey:
    """Read the whole tree, a bounded number of nodes at a time."""
    seen = Survey()
    session, tree = ledger.session, ledger.tree
    for state in ledger.reader.job_states:
        for name in await session.children(tree.state(state)) or []:
            seen.entries[read_entry(name) or name].append(f"{escape(state)}/{name}")
    names = sorted(await session.children(tree.batches) or [])
    for bid in (name for name in names if is_item(name, BID)):
        seen.batches[bid] = await _batch(ledger, bid)
        keys = await session.stat(tree.batch(bid, "keys"))
        seen.keys[bid] = keys.children if keys else 0
        await _members(ledger, bid, seen)
    await _jobs(ledger, seen, progress)
    for name in await session.children(tree.uuids) or []:
        node = await session.get(f"{tree.uuids}/{name}")
        if node is not None:
            seen.uuids[unescape(name)] = node.data.decode("utf-8", "replace")
    await _locks(ledger, [tree.batch(bid) for bid in seen.batches], seen)
    seen.orphans = await ledger.removal.orphans()
    return seen


async def _members(ledger: Ledger, bid: str, seen: Survey) -> None:
    for bucket in dict.fromkeys(ledger.tree.layout.buckets.values()):
        for jid in await ledger.session.children(ledger.tree.batch(bid, "states", bucket)) or []:
            seen.buckets[jid].append((bid, bucket))


async def _jobs(ledger: Ledger, seen: Survey, progress: Progress | None) -> None:
    names = sorted(
        name for name in await ledger.session.children(ledger.tree.jobs) or [] if is_item(name, JID)
    )
    for begin in range(0, len(names), READ_TOGETHER):
        some = names[begin : begin + READ_TOGETHER]
        seen.jobs |= zip(some, await ledger.reader.jobs_or_faults(some), strict=True)
        await _locks(ledger, [ledger.tree.job(jid) for jid in some], seen)
        if progress:
            progress("ledger", len(some))


async def _locks(ledger: Ledger, items: Sequence[str], seen: Survey) -> None:
    locks = await ledger.session.stat_all([f"{item}/lock" for item in items])
    seen.locks += [item for item, lock in zip(items, locks, strict=True) if lock and not lock.owner]


async def _batch(ledger: Ledger, bid: str) -> BatchEntry | Unreadable | None:
    try:
        return await ledger.reader.batch(bid)
    except Unreadable as error:
        return error


# -------------------------------------------------------------------- the rules


def faults(ledger: Ledger, seen: Survey) -> list[Fault]:
    """List what looks wrong in a survey."""
    found = [fault for jid in _named(seen) for fault in _of_job(ledger, jid, seen)]
    found += [fault for bid in seen.batches for fault in _of_batch(bid, seen)]
    found += _of_uuids(seen)
    found += [Fault("tree-lock", f"the lock on {item} has no session") for item in seen.locks]
    found += [Fault("tree-orphan", f"{item} has had no status for an hour") for item in seen.orphans]
    return found


def _named(seen: Survey) -> Sequence[str]:
    return sorted(seen.jobs.keys() | seen.entries.keys() | seen.buckets.keys())


def _of_job(ledger: Ledger, jid: str, seen: Survey) -> Iterator[Fault]:
    job = seen.jobs.get(jid)
    if isinstance(job, Unreadable):
        yield Fault("tree-status", str(job))
    elif job is None:
        yield from _of_missing(ledger, jid, seen)
    else:
        yield from _of_entries(job, seen)
        yield from _of_buckets(ledger, job, seen)


def _of_missing(ledger: Ledger, jid: str, seen: Survey) -> Iterator[Fault]:
    """Of a job that is not there nothing may be left but, in some layouts, its name among the deleted."""
    grave = "" if ledger.tree.layout.keeps_deleted else ledger.tree.layout.buckets[DELETED]
    entries = seen.entries.get(jid, [])
    buckets = [
        where for where in seen.buckets.get(jid, []) if where[1] != grave and seen.batches.get(where[0])
    ]
    if entries and buckets:
        yield Fault("tree-job-missing", f"{jid} is not there; named by {entries} and {buckets}")
    elif entries:
        yield Fault("tree-index-stray", f"{entries} name no job")
    elif buckets:
        yield Fault("tree-bucket-stray", f"{buckets} name {jid}, which is not there")


def _of_entries(job: JobEntry, seen: Survey) -> Iterator[Fault]:
    entries = seen.entries.get(job.jid, [])
    right = f"{escape(job.state)}/{entry_name(job.priority, job.jid)}"
    if not entries:
        yield Fault("tree-index-missing", f"{job.jid} is {job.state} and has no index entry", job.version)
    elif len(entries) > 1:
        yield Fault("tree-index-double", f"{job.jid} has the index entries {sorted(entries)}", job.version)
    elif entries != [right]:
        yield Fault("tree-index-misplaced", f"{job.jid} is at {entries[0]}, not {right}", job.version)


def _of_buckets(ledger: Ledger, job: JobEntry, seen: Survey) -> Iterator[Fault]:
    if job.batch and job.batch not in seen.batches:
        yield Fault("tree-batch-missing", f"{job.jid} is of {job.batch}, which is not there", job.version)
        return
    if job.batch and seen.batches[job.batch] is None:
        return  # it is being deleted
    expected = [(job.batch, ledger.tree.layout.bucket(job.state))] if job.batch else []
    if job.standing.newer:
        expected = []
    actual = seen.buckets.get(job.jid, [])
    own = [where for where in actual if where[0] == job.batch]
    if strays := [where for where in actual if where[0] != job.batch or not expected]:
        yield Fault("tree-bucket-stray", f"{job.jid} is not of {strays}", job.version)
    elif expected and not own:
        yield Fault("tree-bucket-missing", f"{job.jid} is in no bucket of {job.batch}", job.version)
    elif len(own) > 1:
        yield Fault("tree-bucket-double", f"{job.jid} is in {sorted(own)}", job.version)
    elif own != expected:
        yield Fault("tree-bucket-misplaced", f"{job.jid} is in {own[0]}, not {expected[0]}", job.version)


def _of_batch(bid: str, seen: Survey) -> Iterator[Fault]:
    entry = seen.batches[bid]
    if isinstance(entry, Unreadable):
        yield Fault("tree-status", str(entry))
        return
    if entry is None:
        return
    mark = (entry.status, entry.expanded)
    if entry.ours and entry.expansion.rows != seen.keys[bid]:
        rows = entry.expansion.rows
        yield Fault("tree-count", f"{bid} counts {rows} jobs and has {seen.keys[bid]} keys", mark)
    if entry.batch.state is BatchState.COMPLETED and entry.batch.unfinished:
        yield Fault("tree-batch-early", f"{bid} is completed with {entry.batch.unfinished} unfinished", mark)
    external_id = entry.batch.external_id
    if external_id and external_id not in seen.uuids:
        yield Fault("tree-uuid-missing", f"{bid} is not found by {external_id!r}", mark)


def _of_uuids(seen: Survey) -> Iterator[Fault]:
    for external_id, bid in seen.uuids.items():
        entry = seen.batches.get(bid)
        if entry is None or (isinstance(entry, BatchEntry) and entry.batch.external_id != external_id):
            yield Fault("tree-uuid-stray", f"{external_id!r} finds {bid!r}, which is not it")
