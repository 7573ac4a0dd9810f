"""What a handler can know about the job that it runs."""

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RunningJob:
    """The job that the current handler was called for."""

    id: str
    key: str
    version: int
    attempt: int
    metadata: dict[str, str]


_current: ContextVar[RunningJob] = ContextVar("maitred_job")


def current_job() -> RunningJob:
    """Give the job that this handler runs; LookupError outside of one."""
    return _current.get()


def enter(id: str, version: int, attempt: int, body: dict[str, Any]) -> None:
    """Note the job for the context that runs it."""
    _current.set(RunningJob(id, body["key"], version, attempt, body.get("metadata") or {}))
