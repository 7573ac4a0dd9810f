"""Records as bytes: the other half of `lua/lib/codec.lua`.

What the scripts write, this reads, and the orders that it writes, the scripts read. Numbers are exact: whole
microseconds fit a double until the year 2255.
"""

import json
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from maitred.core.floor import Kind
from maitred.core.job import (
    Band,
    Finish,
    Held,
    HoldKind,
    Job,
    Lease,
    Lower,
    Message,
    Order,
    Pause,
    Phase,
    Run,
    Start,
    Stop,
    Submitter,
    Typed,
    View,
    Wake,
)
from maitred.core.occupancy import Running
from maitred.core.output import ArtifactView
from maitred.core.snapshot import HoldState

_ORDER = struct.Struct("<BBBBddBd")
_HEAD = struct.Struct("<c5BI3Hidddddddd")
_LEASE = struct.Struct("<16sddBBBd")
_LEDGER = struct.Struct("<d")
_SAID = struct.Struct("<BdddBI")
_START = struct.Struct("<8s16sddIHH")
# What follows the need of a job that no stage or ledger has anything to say of.
_NOTHING_MORE = bytes(4 + 4 + 2 + 8)
_TOLD = struct.Struct("<8s16sd")
_TYPED = struct.Struct("<8s16sHH")
_RUN = struct.Struct("<BIHdd")
_LENGTH = struct.Struct("<H")
_TELLING = struct.Struct("<BdI")
PHASES = {b"W": Phase.WAITING, b"R": Phase.RUNNING, b"H": Phase.HELD, b"E": Phase.ENDED}
_OWN, _ELASTIC, _BLOCKED, _LACKING, _PROVISIONED, _EXEMPT = 1, 2, 8, 16, 32, 64
_POLICY_FLOOR, _FOR_LEDGER, _ORDER_EXEMPT, _ONLY_NEW, _CALLBACK, _ABANDON = 1, 2, 4, 8, 16, 32
_NO_LEDGER = ("", "", False, False, b"", b"", "", 0)


def text(raw: bytes) -> str:
    """Read text that came from a caller."""
    return raw.decode("utf-8", "surrogateescape")


def raw(text: str) -> bytes:
    """Write text; bytes that were not UTF-8 come back as they were, other surrogates as escapes."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")


def record_key(record: int) -> bytes:
    """Give the 8 bytes by which a record is named."""
    return record.to_bytes(8, "big")


def encode_order(order: Order) -> bytes:
    """Write what a PUT asks, without its body."""
    flags = _POLICY_FLOOR if order.policy_floor else 0
    more = b""
    if order.callback:
        flags |= _CALLBACK
    if order.abandon:
        flags |= _ABANDON
        more = _LEDGER.pack(order.abandon)
    if order[12:20] != _NO_LEDGER:
        flags |= _FOR_LEDGER | (_ORDER_EXEMPT if order.exempt else 0) | (_ONLY_NEW if order.only_new else 0)
        more += _encode_ledger(order)
    head = _ORDER.pack(
        order.band,
        order.priority,
        order.level,
        order.elastic,
        order.duration,
        -1.0 if order.delay is None else order.delay,
        flags,
        order.expires_at,
    )
    id, submitter, need = raw(order.id), raw(f"{order.submitter[0]}.{order.submitter[1]}"), raw(order.need)
    pack = _LENGTH.pack
    return b"".join((head, pack(len(id)), id, pack(len(submitter)), submitter, pack(len(need)), need, more))


def _encode_ledger(order: Order) -> bytes:
    """Write what an order has for the ledger; most have nothing."""
    pack, batch, profile, ledger = _LENGTH.pack, raw(order.batch), raw(order.profile), raw(order.ledger)
    return b"".join(
        (
            pack(len(batch)),
            batch,
            pack(len(profile)),
            profile,
            len(order.label).to_bytes(4, "little"),
            order.label,
            bytes([len(order.token)]),
            order.token,
            pack(len(ledger)),
            ledger,
            _LEDGER.pack(order.status),
        )
    )


def encode_said(result: Finish) -> bytes:
    """Write what a stage said beside its end; nothing, as most do."""
    said = (result.transient, result.priority, result.space, result.identifiers, result.status)
    if said == (False, None, None, None, 0):
        return b""
    identifiers = result.identifiers or b""
    return (
        _SAID.pack(
            result.transient,
            -1 if result.priority is None else result.priority,
            -1 if result.space is None else result.space,
            result.status,
            result.identifiers is not None,
            len(identifiers),
        )
        + identifiers
    )


class Reader:
    """Walks through bytes that hold strings with their length before them."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def take(self, width: int) -> bytes:
        """Give the next string, whose length stands before it in so many bytes."""
        length = int.from_bytes(self.data[self.at : self.at + width], "little")
        begin = self.at + width
        self.at = begin + length
        return self.data[begin : self.at]

    def number(self) -> float:
        """Give the next number."""
        (number,) = _LEDGER.unpack_from(self.data, self.at)
        self.at += _LEDGER.size
        return float(number)


def decode_job(record: int, data: bytes, body: bytes, extra: bytes = b"", handed_on: bytes = b"") -> Job:
    """Read a job's record, with what only some jobs have and what its last stage handed on."""
    (phase, stage, band, priority, level, flags, version, attempt, unspent, retries, recent,
     created, release, arrival, expires, delay, ended, previous,
     duration) = _HEAD.unpack_from(data)  # fmt: skip
    reader = Reader(data, _HEAD.size)
    take = reader.take
    id, submitter, need, worker = text(take(2)), text(take(2)), text(take(2)), text(take(2))
    code, message, result = text(take(1)), text(take(4)), take(4)
    job = Job(
        record=record,
        id=id,
        version=version,
        submitter=Submitter.read(submitter),
        need=need,
        body=body,
        created_at=int(created),
        band=Band(band),
        priority=priority,
        level=level,
        elastic=bool(flags & _ELASTIC),
        duration=int(duration),
        blocked=bool(flags & _BLOCKED),
        phase=PHASES[phase],
        own=bool(flags & _OWN),
        stage=stage,
        attempt=attempt,
        unspent=unspent,
        retries=retries,
        release=int(release),
        arrival=int(arrival),
        delay=int(delay),
        recent=None if recent < 0 else recent,
        expires_at=int(expires),
        ended_at=int(ended),
        previous=int(previous),
        worker=worker,
        code=code,
        message=message,
        result=result,
        timeline=list(_runs(reader)),
        lacking=bool(flags & _LACKING),
        provisioned=bool(flags & _PROVISIONED),
        exempt=bool(flags & _EXEMPT),
        data=handed_on,
    )
    if extra:
        _read_extra(job, extra)
    return job


_PHASE_CODES = {phase: code for code, phase in PHASES.items()}


def encode_record(job: Job) -> bytes:
    """Write a job as its record is kept, without its runs."""
    flags = (_ELASTIC if job.elastic else 0) | (_EXEMPT if job.exempt else 0)
    head = _HEAD.pack(
        _PHASE_CODES[job.phase],
        job.stage,
        job.band,
        job.priority,
        job.level,
        flags,
        job.version,
        job.attempt,
        job.unspent,
        job.retries,
        -1 if job.recent is None else job.recent,
        job.created_at,
        job.release,
        job.arrival,
        job.expires_at,
        job.delay,
        job.ended_at,
        0,
        job.duration,
    )
    words = [raw(job.id), raw(str(job.submitter)), raw(job.need), b""]
    code, message = raw(job.code), raw(job.message)
    return b"".join(
        (
            head,
            *(_LENGTH.pack(len(word)) + word for word in words),
            bytes([len(code)]) + code,
            _long(message),
            _long(job.result),
        )
    )


def encode_extra(job: Job) -> bytes:
    """Write what only some jobs have, without what their runs said and left behind elsewhere."""
    batch, profile, ledger = raw(job.batch), raw(job.profile), raw(job.ledger)
    hold = f"{job.hold.at} {encode_pause(job.hold.by, job.hold.reason)}".encode() if job.hold else b""
    return b"".join(
        (
            _LENGTH.pack(len(batch)) + batch,
            _LENGTH.pack(len(profile)) + profile,
            _LEDGER.pack(job.space),
            _long(job.identifiers),
            _long(hold),
            _LENGTH.pack(len(ledger)) + ledger,
            _LEDGER.pack(job.status),
            _long(b""),
            _long(b""),
            _TELLING.pack(job.callback, job.abandon, 0),
        )
    )


def untold_in(extra: bytes) -> int:
    """Give how many notices a job says are untold: the last of its extras."""
    return int.from_bytes(extra[-4:], "little")


def _long(data: bytes) -> bytes:
    return len(data).to_bytes(4, "little") + data


def _read_extra(job: Job, extra: bytes) -> None:
    reader = Reader(extra, 0)
    job.batch, job.profile, job.space = text(reader.take(2)), text(reader.take(2)), int(reader.number())
    job.identifiers, hold = reader.take(4), reader.take(4)
    job.hold = decode_hold(f"job:{job.id}", hold) if hold else None
    job.ledger, job.status = text(reader.take(2)), int(reader.number())
    job.progress = reader.take(4)
    job.artifacts = tuple(_artifacts(Reader(reader.take(4), 0)))
    callback, abandon, _ = _TELLING.unpack_from(extra, reader.at)
    job.callback, job.abandon = bool(callback), int(abandon)


def _artifacts(reader: Reader) -> Iterator[ArtifactView]:
    while reader.at < len(reader.data):
        yield ArtifactView(text(reader.take(2)), text(reader.take(2)), int(reader.number()))


def _runs(reader: Reader) -> list[Run]:
    runs = []
    while reader.at < len(reader.data):
        stage, version, attempt, start, end = _RUN.unpack_from(reader.data, reader.at)
        reader.at += _RUN.size
        worker, code = text(reader.take(2)), text(reader.take(1))
        runs.append(Run(stage, version, attempt, worker, int(start), int(end), code))
    return runs


def encode_pause(by: str, reason: str) -> str:
    """Write who pauses a queue and why; the script adds when."""
    return json.dumps({"by": by, "reason": reason})


def decode_pause(data: bytes) -> Pause | None:
    """Read who paused a queue, why and when: nothing while it is open, nobody if that was lost."""
    if not data:
        return None
    at, _, written = data.partition(b" ")
    kept = json.loads(written)
    return Pause(kept.get("by", ""), kept.get("reason", ""), int(at))


def decode_hold(flag: str, data: bytes) -> Held:
    """Read a hold: what is held, when it was, and JSON, who did it and why."""
    kind, _, name = flag.partition(":")
    at, _, written = data.partition(b" ")
    kept = json.loads(written)
    return Held(cast(HoldKind, kind), name, kept["by"], kept["reason"], int(at))


def decode_holds(flat: list[bytes]) -> tuple[Held, ...]:
    """Read flags and texts of holds, one after another."""
    return tuple(decode_hold(text(flat[i]), flat[i + 1]) for i in range(0, len(flat), 2))


class Page(NamedTuple):
    """What a reading script says of the whole queue: time, pause, units of each level, space left."""

    now: int
    paused: Pause | None
    limits: tuple[int, ...]
    used: tuple[int, ...]
    space_free: int | None

    @classmethod
    def read(
        cls, now: int, paused: bytes, limits: list[int], used: list[int], space_free: int | bytes
    ) -> "Page":
        """Read the beginning of a script's answer."""
        left = None if isinstance(space_free, bytes) else space_free
        return cls(now, decode_pause(paused), tuple(limits), tuple(used), left)


def decode_view(entry: list[Any], page: Page) -> View:
    """Read what a reading script shows of a job."""
    (record, head, body, position, release, nonce, running, serving, free, started, granted, holding,
     extra, holds, stopping) = entry  # fmt: skip
    return View(
        job=decode_job(record, head, body, extra),
        position=None if position < 0 else position,
        release=None if release < 0 else release,
        nonce=None if nonce < 0 else nonce,
        running_versions=tuple(running),
        now=page.now,
        paused=page.paused,
        serving=serving,
        free=free,
        limits=page.limits,
        used=page.used,
        started=None if started < 0 else started,
        granted=None if granted < 0 else granted,
        holding=None if holding < 0 else holding,
        holds=decode_holds(holds),
        space_free=page.space_free,
        stopping=bool(stopping),
    )


def decode_views(entries: list[Any], page: Page) -> list[View]:
    """Read some jobs of one answer."""
    return [decode_view(entry, page) for entry in entries]


def decode_lease(record: int, data: bytes) -> HoldState:
    """Read a lease."""
    token, start, number, confirmed, level, kind, duration = _LEASE.unpack_from(data)
    reader = Reader(data, _LEASE.size)
    lowered, stopping = text(reader.take(1)), text(reader.take(1))
    return HoldState(
        record,
        token,
        int(start),
        int(number),
        level,
        Kind(kind),
        int(duration),
        bool(confirmed),
        lowered,
        stopping,
    )


def decode_running(lease: bytes, need: bytes, draining: int, now: int) -> Running:
    """Read a run as a planner sees it; when its stop was asked for is not kept, so it counts as now."""
    hold = decode_lease(0, lease)
    stopping = now if hold.stopping else None
    return Running(hold.start, hold.level, hold.duration, hold.kind, text(need), stopping, bool(draining))


def decode_message(data: bytes) -> Message:
    """Read what a worker is told, in its inbox or in an answer."""
    kind = data[:1]
    if kind == b"W":
        return Wake()
    if kind == b"S":
        return decode_start(data)
    if kind == b"T":
        record, token, columns, rows = _TYPED.unpack_from(data, 1)
        size = (columns, rows) if columns else None
        return Typed(Lease(int.from_bytes(record, "big"), token), data[1 + _TYPED.size :], size)
    record, token, time = _TOLD.unpack_from(data, 1)
    lease, code = Lease(int.from_bytes(record, "big"), token), text(data[1 + _TOLD.size :])
    return Stop(lease, code, int(time)) if kind == b"X" else Lower(lease, int(time), code)


def decode_start(data: bytes) -> Start:
    """Read a job that is handed to a worker."""
    record, token, start, duration, version, attempt, length = _START.unpack_from(data, 1)
    begin = 1 + _START.size
    at = begin + length
    id = text(data[begin:at])
    begin = at + 2
    at = begin + (data[at] | data[at + 1] << 8)
    need = text(data[begin:at])
    lease = Lease(int.from_bytes(record, "big"), token)
    if data.startswith(_NOTHING_MORE, at):
        body = data[at + len(_NOTHING_MORE) :]
        return Start(lease, id, version, attempt, need, body, int(start), int(duration))
    reader = Reader(data, at)
    handed_on, identifiers = reader.take(4), reader.take(4)
    ledger, status = text(reader.take(2)), int(reader.number())
    return Start(
        lease,
        id,
        version,
        attempt,
        need,
        data[reader.at :],
        int(start),
        int(duration),
        handed_on,
        identifiers,
        ledger,
        status,
    )
