"""Reads the raw dump of a queue's keys into a snapshot that can be compared with the reference."""

import json
import struct
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

from maitred.core.batch import Row
from maitred.core.job import Band, Lane, Phase, Place, Submitter
from maitred.core.sayings import Spoken
from maitred.core.settings import Settings
from maitred.core.snapshot import HoldState, Pool, Snapshot, WorkerState, without_wakes
from maitred.store.valkey.batches import decode_batch, decode_row, rows_said
from maitred.store.valkey.keys import NAMES
from maitred.store.valkey.notices import decode_head as decode_notices_head
from maitred.store.valkey.notices import decode_notice, decode_tries
from maitred.store.valkey.pieces import decode_artifact, decode_chunk, decode_head
from maitred.store.valkey.records import (
    decode_hold,
    decode_job,
    decode_lease,
    decode_message,
    raw,
    text,
    untold_in,
)

_TOP = 1 << 53
_FIXED = 23  # numbers of the floor before those of levels and states


def read_dump(flat: list[Any], settings: Settings) -> Snapshot:
    """Build a snapshot from `name, type, content` triples."""
    keys = {text(flat[i]): flat[i + 2] for i in range(0, len(flat), 3)}
    values = struct.unpack(f"<{len(keys['Floor']) // 8}d", keys["Floor"])
    kept = _pairs(keys.get("Jobs", []))
    bodies, extras, data, tries = (
        {field[1:]: kept.pop(field) for field in list(kept) if len(field) == 9 and field.startswith(kind)}
        for kind in (b"b", b"x", b"d", b"n")
    )
    snapshot = Snapshot(
        now=int(values[2]),
        seq=int(values[1]),
        paused=values[4] == 1,
        free=int(values[5]),
        waiting=int(values[3]),
    )
    levels = len(settings.levels)
    snapshot.slots = int(values[10])
    snapshot.used = tuple(int(value) for value in values[_FIXED : _FIXED + levels])
    names = ("pending", "held", "failed", "completed", *settings.stages)
    snapshot.counts = {name: int(value) for name, value in zip(names, values[_FIXED + levels :], strict=True)}
    for record, head in kept.items():
        number = int.from_bytes(record, "big")
        snapshot.jobs[number] = decode_job(
            number,
            head,
            bodies.pop(record, b"<no body>"),
            extras.get(record, b""),
            data.pop(record, b""),
        )
    _read_notices(snapshot, keys, extras, tries)
    for record in kept:
        extras.pop(record, None)
    if bodies or extras or data:
        raise ValueError(f"bodies without a record: {bodies} {extras} {data}")
    snapshot.newest = {
        text(id): int.from_bytes(record, "big") for id, record in _pairs(keys.get("Ids", [])).items()
    }
    snapshot.ended = sorted(_by_score(keys.get("Ended", [])) + _by_score(keys.get("Kept", [])))
    snapshot.expiring = _by_score(keys.get("Expiry", []))
    _read_line(snapshot, keys)
    _read_workers(snapshot, keys)
    _read_stops(snapshot, keys, values)
    _read_holds(snapshot, keys, values)
    _read_batches(snapshot, keys, values)
    _read_exempt(snapshot, keys)
    snapshot.unsaid = sorted(int.from_bytes(m, "big") for m, _ in _scored(keys.get("Outbox", [])))
    _read_outputs(snapshot, keys)
    snapshot.gone = [text(id) for id in keys.get("Gone", [])]
    for name, content in _named(keys, "Recent"):
        snapshot.recent[Submitter.read(name)] = [int(score) for _, score in _scored(content)]
    return snapshot


def _read_notices(
    snapshot: Snapshot, keys: dict[str, Any], extras: dict[bytes, bytes], tries: dict[bytes, bytes]
) -> None:
    """Read what submitters are to be told; every version counts what it has to tell."""
    heads = {text(id): decode_notices_head(head) for id, head in _pairs(keys.get("NoticeHeads", [])).items()}
    snapshot.notice_locks = {id: lock for id, (_, lock) in heads.items()}
    snapshot.notices_due = {text(id): int(at) for id, at in _scored(keys.get("NoticesDue", []))}
    for id, content in _named(keys, "Notices"):
        counts = [heads[id][0] if id in heads and not at else 0 for at in range(len(content))]
        snapshot.notices[id] = [decode_notice(*each) for each in zip(content, counts, strict=True)]
    snapshot.deliveries = {int.from_bytes(record, "big"): decode_tries(log) for record, log in tries.items()}
    snapshot.deadlines = {int.from_bytes(m, "big"): int(at) for m, at in _scored(keys.get("Abandon", []))}
    untold = Counter(each.record for pending in snapshot.notices.values() for each in pending)
    said = {int.from_bytes(record, "big"): untold_in(extra) for record, extra in extras.items()}
    if {record: count for record, count in said.items() if count} != untold:
        raise ValueError(f"jobs say that {said} notices are untold, and there are {untold}")
    pinned = {record for record, job in snapshot.jobs.items() if job.phase is Phase.ENDED}
    pinned = {record for record in pinned if untold[record] or snapshot.jobs[record].batch}
    if pinned != {record for _, record in _by_score(keys.get("Kept", []))}:
        raise ValueError("jobs that have something to tell are not kept, or others are")


def _read_line(snapshot: Snapshot, keys: dict[str, Any]) -> None:
    lanes = set(json.loads(keys.get("Lanes", b"[]")))
    places = []
    for name, content in _named(keys, "Reservations"):
        if name not in lanes:
            raise ValueError(f"lane {name} is not registered")
        lane = Lane.read(name)
        places += [_place(snapshot, lane, member) for member, _ in _scored(content)]
    snapshot.places = sorted(places, key=lambda place: place.rank(snapshot.now))
    for name, content in _named(keys, "SubmitterInfo"):
        snapshot.stacks[_pool(name)] = [int.from_bytes(member, "big") for member, _ in _scored(content)]
    for name, content in _named(keys, "Nonces"):
        snapshot.nonces[_pool(name)] = [
            (int(score), int.from_bytes(member, "big")) for member, score in _scored(content)
        ]
    for name, content in _named(keys, "Own"):
        snapshot.own[Submitter.read(name)] = [int.from_bytes(m, "big") for m, _ in _scored(content)]


def _place(snapshot: Snapshot, lane: Lane, member: bytes) -> Place:
    order, arrival = struct.unpack_from(">QQ", member)
    owner = int.from_bytes(member[17:], "big") if member[16:17] == b"J" else 0
    submitter = snapshot.jobs[owner].submitter if owner else Submitter.read(text(member[17:]))
    if lane.band is Band.FRONT and order != _TOP - arrival:
        raise ValueError("a front place is out of order")
    release = order if lane.band.pooled else snapshot.jobs[owner].release
    return Place(lane, release, arrival, submitter, owner)


def _read_stops(snapshot: Snapshot, keys: dict[str, Any], values: tuple[float, ...]) -> None:
    """Read which runs can give way and which are being stopped; the counters beside must say the same."""
    noted = _pairs(keys.get("Stopping", []))
    snapshot.stops = {int.from_bytes(f, "big"): text(id) for f, id in noted.items() if f[:1] != b"i"}
    counts = {text(field[1:]): int(count) for field, count in noted.items() if field[:1] == b"i"}
    if counts != Counter(snapshot.stops.values()) or int(values[11]) != len(snapshot.stops):
        raise ValueError(f"{values[11]} stops are counted, and by job {counts}")
    for _, content in _named(keys, "Credit"):
        snapshot.credit += [int.from_bytes(member[:8], "big") for member, _ in _scored(content)]
    snapshot.credit.sort()
    for name, content in _named(keys, "Yielding"):
        records = [int.from_bytes(member[:8], "big") for member, _ in _scored(content)]
        snapshot.giving_way.setdefault(int(name.rpartition("/")[2]), []).extend(records)
    snapshot.giving_way = {level: sorted(records) for level, records in snapshot.giving_way.items()}
    elastics = sum(len(records) for level, records in snapshot.giving_way.items() if level)
    if (int(values[12]), int(values[13])) != (len(snapshot.giving_way.get(0, [])), elastics):
        raise ValueError(f"{values[12]} interactive and {values[13]} elastic runs are counted")


def _read_holds(snapshot: Snapshot, keys: dict[str, Any], values: tuple[float, ...]) -> None:
    """Read the holds of many and whom they keep; the counters and lists beside must say the same."""
    snapshot.holds = {
        text(flag): decode_hold(text(flag), held) for flag, held in _pairs(keys.get("Holds", [])).items()
    }
    for name, content in _named(keys, "HeldBy"):
        snapshot.kept[name] = sorted(int.from_bytes(member, "big") for member, _ in _scored(content))
    snapshot.returning = [text(flag) for flag in keys.get("Returning", [])]
    snapshot.space_used = int(values[19])
    if (int(values[17]), int(values[18])) != (len(snapshot.holds), len(snapshot.returning)):
        raise ValueError(f"{values[17]} holds and {values[18]} that were taken away are counted")
    held = sorted(job.record for job in snapshot.jobs.values() if job.phase is Phase.HELD)
    if held != sorted(int.from_bytes(member, "big") for member, _ in _scored(keys.get("Held", []))):
        raise ValueError("the list of held jobs is not what is held")


def _read_batches(snapshot: Snapshot, keys: dict[str, Any], values: tuple[float, ...]) -> None:
    """Read the batches with their rows; the lists of what is to be done for them must say the same."""
    kept = _pairs(keys.get("Batches", []))
    snapshot.batches_made = int(values[20])
    for id in sorted(field for field in kept if len(field) == 13 and field.startswith(b"bid")):
        batch = decode_batch(id, kept[id], kept.get(b"s" + id, b""), kept.get(b"r" + id, b""))
        batch.rows = _rows(keys, batch.id)
        if rows_said(kept[id]) != len(batch.rows):
            raise ValueError(f"batch {batch.id} says that it has {rows_said(kept[id])} rows")
        snapshot.batches[batch.id] = batch
    trash = [text(id) for id in keys.get("BatchTrash", [])]
    snapshot.trash = {id: _rows(keys, id) for id in trash}
    if int(values[21]) != len(trash):
        raise ValueError(f"{values[21]} deleted batches are counted")
    batches = snapshot.batches.values()
    work = {b.id for b in batches if b.work(-1) in ("expand", "report")}
    lists = {
        "BatchList": {batch.id for batch in batches},
        "BatchWork": work,
        "BatchSend": {batch.id for batch in batches if batch.unsent},
        "BatchAge": {batch.id for batch in batches},
    }
    for name, wanted in lists.items():
        if {text(member) for member, _ in _scored(keys.get(name, []))} != wanted:
            raise ValueError(f"{name} is not {wanted}")
    external = {batch.external_id: batch.id for batch in batches if batch.external_id}
    if {text(one): text(id) for one, id in _pairs(keys.get("BatchIds", [])).items()} != external:
        raise ValueError("batches are not found by their external id")


def _rows(keys: dict[str, Any], id: str) -> dict[str, Row]:
    order = [text(member) for member, _ in _scored(keys.get(f"BatchJobs.{id}", []))]
    rows = {text(job): decode_row(row) for job, row in _pairs(keys.get(f"BatchRows.{id}", [])).items()}
    if set(order) != set(rows):
        raise ValueError(f"batch {id} lists {order} and has {sorted(rows)}")
    return {job: rows[job] for job in order}


def _read_outputs(snapshot: Snapshot, keys: dict[str, Any]) -> None:
    """Read what runs said and left behind; a stream's head must say what it holds."""
    for name, content in _named(keys, "Output"):
        kept = _pairs(content)
        first, last, size, speaker, heard = decode_head(kept.pop(b""))
        chunks = [decode_chunk(int(number), kept[number]) for number in sorted(kept, key=int)]
        spoken = Spoken(last, size, deque(chunks), speaker, heard)
        snapshot.outputs[int.from_bytes(raw(name), "big")] = spoken
        if spoken.first != first:
            raise ValueError(f"a stream is said to begin with {first}, it has {sorted(kept)}")
    for name, content in _named(keys, "Artifacts"):
        files = [decode_artifact(text(file), kept) for file, kept in _pairs(content).items()]
        snapshot.files[int.from_bytes(raw(name), "big")] = sorted(files)


def _read_exempt(snapshot: Snapshot, keys: dict[str, Any]) -> None:
    waiting = Counter(
        job.submitter for job in snapshot.jobs.values() if job.exempt and job.phase is Phase.WAITING
    )
    noted = {Submitter.read(text(who)): int(n) for who, n in _pairs(keys.get("Exempt", [])).items()}
    if noted != waiting:
        raise ValueError(f"{noted} waiting jobs are exempt, and there are {waiting}")


def _read_workers(snapshot: Snapshot, keys: dict[str, Any]) -> None:
    crews = json.loads(keys.get("Crews", b"{}"))
    ends = {text(name): int(score) for name, score in _scored(keys.get("Workers", []))}
    free = {text(name): int(score) for _, content in _named(keys, "Free") for name, score in _scored(content)}
    leases: dict[str, list[HoldState]] = {
        name: sorted(
            (decode_lease(int.from_bytes(r, "big"), lease) for r, lease in _pairs(content).items()),
            key=lambda hold: hold.number,
        )
        for name, content in _named(keys, "Leases")
    }
    about = {text(name): said for name, said in _pairs(keys.get("About", [])).items()}
    for raw_name, info in _pairs(keys.get("WorkerInfo", [])).items():
        name = text(raw_name)
        snapshot.workers[name] = WorkerState(
            slots=int.from_bytes(info[:2], "little"),
            free=free.pop(name, 0),
            draining=info[2] == 1,
            lease_end=ends.pop(name),
            serves=frozenset(crews[text(info[3:])]),
            holds=tuple(leases.pop(name, ())),
            about=about.pop(name, b""),
        )
    if free or ends or leases or about:
        raise ValueError(f"workers that are not there: {free} {ends} {leases} {about}")
    for name, content in _named(keys, "Inbox"):
        kept = without_wakes([decode_message(message) for message in content])
        if kept:
            snapshot.inboxes[name] = kept


def _named(keys: dict[str, Any], name: str) -> Iterator[tuple[str, Any]]:
    start = NAMES[name]
    for key, content in keys.items():
        if key.startswith(start):
            yield key.removeprefix(start), content


def _pool(name: str) -> Pool:
    lane, _, submitter = name.partition("/")
    return Lane.read(lane), Submitter.read(submitter)


def _pairs(flat: Any) -> dict[bytes, bytes]:
    if isinstance(flat, dict):
        return flat
    return dict(zip(flat[::2], flat[1::2], strict=True))


def _scored(flat: Any) -> list[tuple[bytes, float]]:
    return [(flat[i], float(flat[i + 1])) for i in range(0, len(flat), 2)]


def _by_score(flat: Any) -> list[tuple[int, int]]:
    return sorted((int(score), int.from_bytes(member, "big")) for member, score in _scored(flat))
