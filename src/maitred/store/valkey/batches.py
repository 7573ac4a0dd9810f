"""Batches as bytes: the other half of `lua/lib/batches.lua`."""

import struct
from typing import Any

from maitred.core.batch import BUCKETS, Batch, BatchState, Row
from maitred.core.job import Submitter
from maitred.errors import IllegalMove
from maitred.store.valkey.records import Reader, text

_HEAD = struct.Struct("<cBdddIIdd7d")
_SEALED, _SEALING, _EXPANDING, _UNSENT = 1, 2, 4, 8
CODES = {
    BatchState.PENDING: "p",
    BatchState.PROCESSING: "w",
    BatchState.HELD: "h",
    BatchState.REPORTING: "r",
    BatchState.COMPLETED: "c",
    BatchState.FAILED: "f",
    BatchState.UPDATE_REPORTING: "u",
}
_STATES = {code: state for state, code in CODES.items()}


def decode_batch(id: bytes, head: bytes, submission: bytes, report: bytes) -> Batch:
    """Read a batch, without its rows."""
    state, flags, created, modified, aged, sequence, tries, try_at, locked, *counts, _ = _HEAD.unpack_from(
        head
    )
    reader = Reader(head, _HEAD.size)
    external, submitter, profile = (text(reader.take(2)) for _ in range(3))
    fault, owner, token = text(reader.take(4)), text(reader.take(2)), reader.take(1)
    return Batch(
        id=text(id),
        external_id=external,
        submitter=Submitter.read(submitter),
        profile=profile,
        submission=submission,
        created_at=int(created),
        modified_at=int(modified),
        state=read_state(state),
        sealed=bool(flags & _SEALED),
        sealing=bool(flags & _SEALING),
        expanding=bool(flags & _EXPANDING),
        fault=fault,
        sequence=sequence,
        report=report,
        unsent=bool(flags & _UNSENT),
        tries=tries,
        try_at=int(try_at),
        owner=owner,
        token=token,
        locked_until=int(locked),
        aged_at=int(aged),
        counts={bucket: int(count) for bucket, count in zip(BUCKETS, counts, strict=True)},
    )


def decode_batches(flat: list[Any]) -> list[Batch]:
    """Read batches of which id, head, submission and report follow one another."""
    return [decode_batch(*flat[i : i + 4]) for i in range(0, len(flat), 4)]


def decode_row(data: bytes) -> Row:
    """Read a job's row in a batch."""
    reader = Reader(data, 8)
    reported = text(reader.take(1))
    return Row(int.from_bytes(data[:8], "big"), data[reader.at :], reported)


def rows_said(head: bytes) -> int:
    """Give how many rows a batch says that it has."""
    return int(_HEAD.unpack_from(head)[-1])


def read_state(code: bytes) -> BatchState:
    """Read the code of a state."""
    return _STATES[text(code)]


def illegal_move(refusal: bytes) -> IllegalMove:
    """Read the refusal of a move that the table of states does not have."""
    return IllegalMove(read_state(refusal[-2:-1]), read_state(refusal[-1:]))
