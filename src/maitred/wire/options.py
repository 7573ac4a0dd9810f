"""A job in keywords, as programs say it: one list of them for all who submit, and the body that they make."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Required, TypedDict


class JobOptions(TypedDict, total=False):
    """What can be said of a job beside its key; what is left out or None is as the queue has it.

    `submitter` is `"user:7"`, `"team:red"`, or type and id. A job runs a `handler` with `args`, a `command`,
    or a `script`, which is a list of steps; in a queue with several stages it has `args` alone.
    """

    submitter: Required[str | tuple[str, str]]
    handler: str | None
    args: Mapping[str, Any] | None
    command: Sequence[str] | None
    script: Sequence[Mapping[str, Any]] | None
    files: Mapping[str, Mapping[str, str]] | None
    artifacts: Sequence[str] | None
    delay: float | None
    priority: int | None
    immediate: bool
    bulk: bool
    class_: str | None
    duration: float | None
    response_url: str | None
    metadata: Mapping[str, str] | None
    expires_at: datetime | None
    abandon_after: float | None
    batch: str | None
    profile: str | None


_RUN = ("handler", "args", "command", "script", "files", "artifacts")
_NAMES = {"class_": "class", "profile": "profile_name"}


def body_of(key: str, options: JobOptions) -> dict[str, Any]:
    """Give the body that says the same, as JSON has it."""
    said = {name: _plain(value) for name, value in options.items() if value is not None}
    run = {name: said.pop(name) for name in _RUN if name in said}
    renamed = {_NAMES.get(name, name): value for name, value in said.items()}
    return {"key": key, **renamed, "submitter": submitter_of(options["submitter"]), "run": run}


def submitter_of(submitter: str | tuple[str, str]) -> dict[str, str]:
    """Give a submitter as a body has it; what makes no sense is refused where the body is."""
    kind, name = submitter.partition(":")[::2] if isinstance(submitter, str) else submitter
    return {"type": kind, "id": name}


def _plain(value: object) -> object:
    """Give a value as JSON has it; what comes in any mapping or sequence goes out in a plain one."""
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [_plain(part) for part in value]
    return value
