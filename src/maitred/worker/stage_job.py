"""The job that a stage is called for: what it is to do, and what it may say of the job beside its result.

What a stage sets is checked when it is over. A value that is not allowed fails the job with the code
`invalid`, and the message names the value and what is allowed; nothing of it reaches the store.
"""

import operator
from typing import Any

from maitred.core.job import Start
from maitred.wire.codec import decode_json, encode_json
from maitred.worker.context import RunningJob
from maitred.worker.outcome import Outcome, failed, sayable

INVALID = "invalid"
LAST_PRIORITY = 99
# Scripts count in doubles, which are exact up to here.
MOST_SPACE = (1 << 53) - 1
IDENTIFIERS_LIMIT = 16_384
Identifiers = dict[str, str | list[str]]


class StageJob:
    """One job in one stage. `data` is what the stage before returned, None in the first.

    A stage may set `priority` (0 to 99, lower first), `space_needed` (bytes of the queue's space) and
    `message`, and change `identifiers`: an object of texts, or lists of texts, that stays with the job. What
    it does not set stays as it was.
    """

    __slots__ = (
        "_job",
        "args",
        "attempt",
        "data",
        "id",
        "identifiers",
        "key",
        "message",
        "metadata",
        "priority",
        "space_needed",
        "stage",
        "version",
    )

    def __init__(self, start: Start, job: RunningJob, args: dict[str, Any]) -> None:
        self.id, self.key, self.version, self.attempt = job.id, job.key, job.version, job.attempt
        self.stage, self.metadata, self.args, self._job = job.stage, job.metadata, args, job
        self.data: Any = decode_json(start.data) if start.data else None
        self.identifiers = _known(start)
        self.priority: int | None = None
        self.space_needed: int | None = None
        self.message = ""

    def progress(self, fraction: float, message: str = "") -> None:
        """Tell whoever watches how far this stage is, from 0 to 1, and what it does; from any thread."""
        self._job.progress(fraction, message)

    def say(self, text: str) -> None:
        """Tell whoever watches something, as a program would print it; from any thread."""
        self._job.say(text)

    def __repr__(self) -> str:
        return f"StageJob({self.stage!r}, key={self.key!r}, version={self.version}, attempt={self.attempt})"


def with_words_of(job: StageJob, start: Start, outcome: Outcome) -> Outcome:
    """Add to the outcome of a stage what it said of its job; what is not allowed of it fails the job.

    A stage that failed keeps its own reason, and what it said in the right way counts all the same.
    """
    faults: list[str] = []
    said = outcome._replace(
        priority=_checked(job.priority, "priority", LAST_PRIORITY, faults),
        space=_checked(job.space_needed, "space_needed", MOST_SPACE, faults),
        identifiers=_identifiers(job.identifiers, _known(start), faults),
        message=outcome.message or _message(job.message, faults),
    )
    if faults and not outcome.code:
        return failed(INVALID, "; ".join(faults))
    return said


def _checked(value: object, name: str, most: int, faults: list[str]) -> int | None:
    """Give a whole number from 0 on; None if it was not set."""
    if value is None:
        return None
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = -1
    if 0 <= number <= most:
        return number
    faults.append(f"{name} {_shown(value)} is not allowed; allowed is a whole number from 0 to {most}")
    return None


def _message(value: object, faults: list[str]) -> str:
    if isinstance(value, str):
        return sayable(value)
    if value is not None:
        faults.append(f"message {_shown(value)} is not allowed; allowed is text")
    return ""


def _known(start: Start) -> Identifiers:
    return decode_json(start.identifiers) if start.identifiers else {}


def _identifiers(value: object, known: Identifiers, faults: list[str]) -> bytes | None:
    """Write the identifiers if they changed."""
    allowed = "allowed is an object of texts, or lists of texts"
    if not _are_texts(value):
        faults.append(f"identifiers {_shown(value)} are not allowed; {allowed}")
        return None
    try:
        written = encode_json(value)
    except ValueError as error:
        faults.append(f"identifiers cannot be written as JSON ({error}); {allowed}")
        return None
    if len(written) > IDENTIFIERS_LIMIT:
        faults.append(f"identifiers have {len(written)} bytes; at most {IDENTIFIERS_LIMIT} are kept")
        return None
    return None if value == known else written


def _are_texts(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(name, str)
        and (
            isinstance(part, str) or (isinstance(part, list) and all(isinstance(each, str) for each in part))
        )
        for name, part in value.items()
    )


def _shown(value: object) -> str:
    """Show a value that is not allowed, whatever it is."""
    try:
        shown = repr(value)
    except Exception:  # noqa: BLE001 - a value that cannot say what it is
        shown = f"of {type(value).__name__}"
    return shown if len(shown) <= 200 else f"{shown[:200]}…"
