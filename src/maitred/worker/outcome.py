"""How a run ended, as the store is told: no code is success, any other names what went wrong."""

from typing import Any, NamedTuple

import msgspec

MESSAGE_LIMIT = 4_000
RESULT_LIMIT = 1 << 20


class Outcome(NamedTuple):
    """The code, a message for people, and the result as JSON."""

    code: str = ""
    message: str = ""
    result: bytes = b""


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
    return Outcome(code, _sayable(message), result)


def _sayable(message: str) -> str:
    """Cut a message, and write what is not Unicode in it as an escape: it must be possible to send it."""
    return message.encode(errors="backslashreplace").decode()[:MESSAGE_LIMIT]


def raised(error: BaseException) -> Outcome:
    """Tell that a handler raised."""
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - an error that cannot say what it is
        said = "(it cannot say why)"
    return failed("error", f"{type(error).__name__}: {said}")
