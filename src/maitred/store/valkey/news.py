"""Reads what the scripts tell of changes: the other half of `lua/lib/news.lua`."""

import struct
from collections.abc import Callable
from typing import Any

from maitred.core.events import (
    Added,
    BatchChanged,
    Changed,
    Deleted,
    Ended,
    Entry,
    Event,
    Freed,
    HouseChanged,
    Lowered,
    Noticed,
    Removed,
    Returned,
    Said,
    Started,
    Stopping,
    Taken,
    Versioned,
)
from maitred.core.floor import Kind
from maitred.store.valkey.records import PHASES, text

_HEAD = struct.Struct("<dd")
_START = struct.Struct("<8sIHBBdd")
_LOWERED = struct.Struct("<8sBd")
_SAID = struct.Struct("<8sdd")
_CHANGED = struct.Struct("<8scB")
_ORDER = 16


def read_entry(id: bytes, blob: bytes) -> Entry:
    """Read one entry of the stream; one of another version has the number 0, as if it were missing."""
    number, now = _HEAD.unpack_from(blob)
    events: list[Event] = []
    at, end = _HEAD.size, len(blob)
    while at < end:
        read = _READ.get(blob[at])
        if read is None:
            return Entry(text(id), 0, int(now), [])
        event, at = read(blob, at + 1)
        events.append(event)
    return Entry(text(id), int(number), int(now), events)


def _string(blob: bytes, at: int) -> tuple[str, int]:
    begin = at + 2
    end = begin + (blob[at] | blob[at + 1] << 8)
    return text(blob[begin:end]), end


def _record(blob: bytes, at: int) -> int:
    return int.from_bytes(blob[at : at + 8], "big")


def _place(kind: Callable[[str, bytes], Event]) -> Callable[[bytes, int], tuple[Event, int]]:
    def read(blob: bytes, at: int) -> tuple[Event, int]:
        lane, at = _string(blob, at)
        return kind(lane, blob[at : at + _ORDER]), at + _ORDER

    return read


def _of_record(kind: Callable[[int], Event]) -> Callable[[bytes, int], tuple[Event, int]]:
    return lambda blob, at: (kind(_record(blob, at)), at + 8)


def _started(blob: bytes, at: int) -> tuple[Event, int]:
    record, version, attempt, level, kind, start, duration = _START.unpack_from(blob, at)
    worker, at = _string(blob, at + _START.size)
    need, at = _string(blob, at)
    number = int.from_bytes(record, "big")
    return Started(number, version, attempt, level, Kind(kind), int(start), int(duration), worker, need), at


def _lowered(blob: bytes, at: int) -> tuple[Event, int]:
    record, level, duration = _LOWERED.unpack_from(blob, at)
    return Lowered(int.from_bytes(record, "big"), level, int(duration)), at + _LOWERED.size


def _with_code(kind: Callable[[int, str], Event]) -> Callable[[bytes, int], tuple[Event, int]]:
    def read(blob: bytes, at: int) -> tuple[Event, int]:
        begin = at + 9
        end = begin + blob[at + 8]
        return kind(_record(blob, at), text(blob[begin:end])), end

    return read


def _versioned(blob: bytes, at: int) -> tuple[Event, int]:
    return Versioned(_record(blob, at), _record(blob, at + 8)), at + 16


def _said(blob: bytes, at: int) -> tuple[Event, int]:
    record, first, last = _SAID.unpack_from(blob, at)
    return Said(int.from_bytes(record, "big"), int(first), int(last)), at + _SAID.size


def _changed(blob: bytes, at: int) -> tuple[Event, int]:
    record, phase, stage = _CHANGED.unpack_from(blob, at)
    return Changed(int.from_bytes(record, "big"), PHASES[phase], stage), at + _CHANGED.size


def _deleted(blob: bytes, at: int) -> tuple[Event, int]:
    id, end = _string(blob, at + 8)
    return Deleted(_record(blob, at), id), end


def _batch(blob: bytes, at: int) -> tuple[Event, int]:
    end = at + 1 + blob[at]
    return BatchChanged(text(blob[at + 1 : end])), end


_READ: dict[int, Callable[[bytes, int], tuple[Any, int]]] = {
    ord("A"): _place(Added),
    ord("R"): _place(Removed),
    ord("T"): _place(Taken),
    ord("S"): _started,
    ord("L"): _lowered,
    ord("X"): _of_record(Stopping),
    ord("U"): _of_record(Freed),
    ord("E"): _with_code(Ended),
    ord("F"): _with_code(Returned),
    ord("c"): _changed,
    ord("d"): _deleted,
    ord("V"): _versioned,
    ord("o"): _said,
    ord("H"): lambda _, at: (HouseChanged(), at),
    ord("B"): _batch,
    ord("N"): lambda _, at: (Noticed(), at),
}
