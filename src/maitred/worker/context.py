"""What a handler can know about the job that it runs."""

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from maitred.core.job import Start
from maitred.core.stages import STAGE


@dataclass(frozen=True, slots=True)
class RunningJob:
    """The job that the current function was called for; `stage` is empty in a queue without stages."""

    id: str
    key: str
    version: int
    attempt: int
    metadata: dict[str, str]
    stage: str = ""


_current: ContextVar[RunningJob] = ContextVar("maitred_job")


def current_job() -> RunningJob:
    """Give the job that this handler runs; LookupError outside of one."""
    return _current.get()


def enter(start: Start, body: dict[str, Any]) -> RunningJob:
    """Note the job for the context that runs it."""
    stage = start.need.removeprefix(STAGE) if start.need.startswith(STAGE) else ""
    job = RunningJob(start.id, body["key"], start.version, start.attempt, body.get("metadata") or {}, stage)
    _current.set(job)
    return job
