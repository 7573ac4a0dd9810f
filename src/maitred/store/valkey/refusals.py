"""Refusals of the scripts: each code is a type of error."""

from typing import Any

from maitred.errors import (
    AlreadyEnded,
    BatchReporting,
    BatchSealed,
    BatchUnfinished,
    Interactive,
    LeaseLost,
    LockLost,
    LongerDuration,
    MaitredError,
    NotFailed,
    NotHeld,
    NotMovable,
    NotRunning,
    NotWaiting,
    OtherNonce,
    OtherSubmitter,
    SettingsForbidden,
    UnknownBatch,
    UnknownJob,
)
from maitred.store.valkey.batches import illegal_move

_REFUSALS: dict[bytes, type[MaitredError]] = {
    b"not-waiting": NotWaiting,
    b"not-movable": NotMovable,
    b"other-nonce": OtherNonce,
    b"ended": AlreadyEnded,
    b"interactive": Interactive,
    b"longer-duration": LongerDuration,
    b"settings": SettingsForbidden,
    b"not-failed": NotFailed,
    b"not-held": NotHeld,
    b"other-submitter": OtherSubmitter,
    b"sealed": BatchSealed,
    b"reporting": BatchReporting,
    b"unfinished": BatchUnfinished,
    b"lock-lost": LockLost,
    b"lease-lost": LeaseLost,
    b"not-running": NotRunning,
}


def refuse(answer: Any, queue: str, id: str = "") -> None:
    """Raise what an answer refuses; a script answers the code alone then."""
    if not isinstance(answer, bytes):
        return
    if answer == b"unknown-job":
        raise UnknownJob(queue, id)
    if answer == b"unknown-batch":
        raise UnknownBatch(queue, id)
    if answer.startswith(b"illegal-move"):
        raise illegal_move(answer)
    raise _REFUSALS[answer]
