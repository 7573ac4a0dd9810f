"""How a run ended, as the store is told: no code is success, any other names what went wrong."""

from typing import Any, NamedTuple

import msgspec

from maitred.core.settings import SECOND
from maitred.errors import Transient

ERROR = "error"
STOPPED = "stopped"
TIME_LIMIT = "time-limit"
MESSAGE_LIMIT = 4_000
RESULT_LIMIT = 1 << 20


class Outcome(NamedTuple):
    """The code, a message for people, and the result as JSON; in the order in which the store is told.

    A `transient` failure is tried again. The rest is what a stage says of its job; None leaves it as it is.
    """

    code: str = ""
    message: str = ""
    result: bytes = b""
    transient: bool = False
    priority: int | None = None
    space: int | None = None
    identifiers: bytes | None = None


class Verdict(NamedTuple):
    """How the programs of a job ended: a code, empty for success, a message, and what the result shows."""

    code: str
    message: str
    shown: dict[str, Any]


class Why(NamedTuple):
    """Why a run is stopped: a stable code, and the time limit that it has passed, 0 if that is not why."""

    code: str
    limit: int = 0


def completed(value: Any) -> Outcome:
    """Tell that the work was done; a value that JSON cannot say, or that is too large, is a failure."""
    try:
        result = msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return failed("result", f"its result cannot be written as JSON: {error}")
    if len(result) > RESULT_LIMIT:
        return Outcome("result", f"its result has {len(result)} bytes; at most {RESULT_LIMIT} are kept")
    return Outcome("", "", result)


def failed(code: str, message: str, value: Any = None) -> Outcome:
    """Tell that the work failed, and what is left of it."""
    result = b"" if value is None else msgspec.json.encode(value)
    return Outcome(code, sayable(message), result)


def sayable(message: str) -> str:
    """Cut a message, and write what is not Unicode in it as an escape: it must be possible to send it."""
    said = message.encode(errors="backslashreplace").decode()
    if len(said) <= MESSAGE_LIMIT:
        return said
    note = f" … (cut: it has {len(said)} characters)"
    return said[: MESSAGE_LIMIT - len(note)] + note


def raised(error: BaseException) -> Outcome:
    """Tell that a handler raised; what it calls transient is tried again."""
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - an error that cannot say what it is
        said = "(it cannot say why)"
    outcome = failed(ERROR, f"{type(error).__name__}: {said}")
    return outcome._replace(transient=_is_transient(error))


def _is_transient(error: BaseException) -> bool:
    """Tell whether an error says that it will pass; a group of errors does if all of them do."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(Transient)[1] is None
    return isinstance(error, Transient)


def interrupted(value: Any) -> Outcome:
    """Tell that the work was stopped before its end, and what is left of it; whoever stopped it knows why."""
    return failed(STOPPED, _SENTENCES[STOPPED], value)


def stopped(why: Why, result: bytes = b"") -> Outcome:
    """Tell that the work was stopped, and why, with what is left of it."""
    return Outcome(why.code, _sentence(why), result)


_SENTENCES = {
    STOPPED: "it was stopped",
    TIME_LIMIT: "it ran longer than its time limit",
    "cut": "cut so that a waiting job could start",
    "halted": "halted so that a waiting job could start",
    "cancelled": "it was cancelled",
    "deleted": "it was deleted",
}


def _sentence(why: Why) -> str:
    sentence = _SENTENCES.get(why.code, _SENTENCES[STOPPED])
    if not why.limit:
        return sentence
    limit = f"{why.limit / SECOND:.6f}".rstrip("0").rstrip(".")
    return f"{sentence} of {limit} s" if why.code == TIME_LIMIT else f"time limit {limit} s: {sentence}"
