"""A session over its WebSocket: the frames that a client sends, checked.

The first one asks for a session or takes one up again. After it, bytes are what was typed, and text tells
that the terminal has another size.
"""

from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationError

from maitred.errors import Fault, InvalidJob
from maitred.wire.body import CommandRun, SubmitterBody
from maitred.wire.checks import Strict, text_of
from maitred.wire.codec import decode_json
from maitred.wire.faults import faults_of, whole

SESSION_BYTES = 256
MOST_CELLS = 1_000
DEFAULT_SIZE = [80, 24]

_Cells = Annotated[int, BeforeValidator(whole), Field(ge=1, le=MOST_CELLS)]
Size = Annotated[list[_Cells], Field(min_length=2, max_length=2)]
_OF_RUN = ("command", "files")
_ApiKey = Annotated[str, text_of(512)]


class OpenFrame(Strict):
    """Ask for a session: a program in a terminal of its own, `[columns, rows]` large.

    `key` is the API key, for browsers, which cannot send it as a header. In the frame, what stands in `run`
    here stands beside the others.
    """

    key: _ApiKey | None = None
    submitter: SubmitterBody
    run: CommandRun
    terminal: Size = Field(default_factory=DEFAULT_SIZE.copy)


class ResumeFrame(Strict):
    """Take up a session again after so many bytes of it that were `received`; else with its last screens."""

    key: _ApiKey | None = None
    session: Annotated[str, text_of(SESSION_BYTES)]
    received: Annotated[int, BeforeValidator(whole), Field(ge=0, le=(1 << 53) - 1)] | None = None
    terminal: Size | None = None


class ResizeFrame(Strict):
    """Tell that the terminal is `[columns, rows]` large now."""

    resize: Size


def parse_first(text: str) -> OpenFrame | ResumeFrame:
    """Read a first frame; `InvalidJob` lists all its faults."""
    value = _json(text)
    try:
        if isinstance(value, dict) and "session" in value:
            return ResumeFrame.model_validate(value)
        return OpenFrame.model_validate(_with_run(value) if isinstance(value, dict) else value)
    except ValidationError as error:
        faults = faults_of(error)
        raise InvalidJob(
            [Fault(fault.path.removeprefix("run."), fault.message) for fault in faults]
        ) from None


def parse_resize(text: str) -> tuple[int, int]:
    """Read what a client says later: columns and rows; `InvalidJob` lists all its faults."""
    try:
        columns, rows = ResizeFrame.model_validate(_json(text)).resize
    except ValidationError as error:
        raise InvalidJob(faults_of(error)) from None
    return columns, rows


def _with_run(frame: dict[str, object]) -> dict[str, object]:
    """Put what a command is made of together; a `run` in the frame itself is no field of it."""
    rest = {name: value for name, value in frame.items() if name not in _OF_RUN}
    misplaced = {"run.run": rest.pop("run")} if "run" in rest else {}
    return {**rest, **misplaced, "run": {name: frame[name] for name in _OF_RUN if name in frame}}


def _json(text: str) -> object:
    try:
        return decode_json(text.encode())
    except ValueError as error:
        raise InvalidJob([Fault("", f"is not JSON: {error}")]) from None
