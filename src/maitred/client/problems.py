"""From a problem back to the error that it was: the same types as in Python, with the same facts."""

from collections.abc import Callable, Mapping
from typing import Any

from maitred import errors
from maitred.errors import Fault, MaitredError

# What a server says of a call that it does not have, since it is older than this client.
_NO_SUCH_ROUTE = "no-such-route"
_PREFIX = "urn:maitred:problem:"

_PLAIN: tuple[type[MaitredError], ...] = (
    errors.NotFound,
    errors.NoReport,
    errors.UnknownArtifact,
    errors.Unauthorized,
    errors.Forbidden,
    errors.Conflict,
    errors.OtherSubmitter,
    errors.NotWaiting,
    errors.NotMovable,
    errors.OtherNonce,
    errors.AlreadyEnded,
    errors.LongerDuration,
    errors.Interactive,
    errors.NotFailed,
    errors.NotHeld,
    errors.BatchSealed,
    errors.OtherBatch,
    errors.BatchReporting,
    errors.BatchUnfinished,
    errors.LeaseLost,
    errors.NotRunning,
    errors.LockLost,
    errors.SettingsForbidden,
    errors.StoreError,
    errors.StoreUnavailable,
    errors.SchemaMismatch,
    errors.EvictionForbidden,
)


def error_of(problem: Mapping[str, Any], *, queue: str = "", id: str = "") -> MaitredError:
    """Give the error that a problem tells of; `queue` and `id` are what was asked for.

    A problem of a kind that this client does not know is a plain `MaitredError` with its detail.
    """
    code = str(problem.get("type", "")).removeprefix(_PREFIX)
    detail = str(problem.get("detail", "the server refused without saying why"))
    with_facts: dict[str, Callable[[], MaitredError]] = {
        errors.InvalidJob.code: lambda: errors.InvalidJob(_faults(problem, detail)),
        errors.TooLarge.code: lambda: errors.TooLarge(problem["size"], problem["limit"]),
        errors.QueueFull.code: lambda: errors.QueueFull(problem["which"], problem["limit"]),
        errors.TooOften.code: lambda: errors.TooOften(problem["wait"]),
        errors.UnknownQueue.code: lambda: errors.UnknownQueue(queue),
        errors.UnknownJob.code: lambda: errors.UnknownJob(queue, id),
        errors.UnknownBatch.code: lambda: errors.UnknownBatch(queue, id),
        errors.UnknownKey.code: lambda: errors.UnknownKey(id),
        errors.IllegalMove.code: lambda: errors.IllegalMove(problem["old"], problem["new"]),
        _NO_SUCH_ROUTE: lambda: errors.NotFound("the server does not have this call; it may be older"),
    }
    if code in with_facts:
        return with_facts[code]()
    kind = next((kind for kind in _PLAIN if kind.code == code), MaitredError)
    return kind(detail)


def _faults(problem: Mapping[str, Any], detail: str) -> list[Fault]:
    faults = [Fault(entry["path"], entry["message"]) for entry in problem.get("errors") or []]
    return faults or [Fault("", detail)]
