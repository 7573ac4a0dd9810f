"""What a handler can know about the job that it runs."""

from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from maitred.core.job import Start
from maitred.core.stages import STAGE


@dataclass(frozen=True, slots=True)
class RunningJob:
    """The job that the current function was called for; `stage` is empty in a queue without stages.

    A function that blocks is not interrupted when its job is to stop. It looks at `cancelled` from time to
    time, or lets `wait_cancelled` pause for it, and returns; what it returns then is not kept.
    """

    id: str
    key: str
    version: int
    attempt: int
    metadata: dict[str, str]
    stage: str = ""
    _stop: Event = field(default_factory=Event, repr=False, compare=False)

    @property
    def cancelled(self) -> bool:
        """Whether the run is to stop, for whatever reason: a cancel, its time limit, a worker that ends."""
        return self._stop.is_set()

    def wait_cancelled(self, timeout: float | None = None) -> bool:
        """Wait until the run is to stop, at most so many seconds; tell whether it is."""
        return self._stop.wait(timeout)


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


def tell_to_stop() -> None:
    """Let the job's function know that the run is to stop, wherever it looks."""
    _current.get()._stop.set()  # noqa: SLF001 - not for those who only run the job
