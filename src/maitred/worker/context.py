"""What a handler can know about the job that it runs, and say of it while it runs."""

from collections.abc import MutableMapping
from contextvars import ContextVar
from threading import Event, Lock
from typing import Any

from maitred.core.output import Stream
from maitred.core.stages import STAGE
from maitred.wire.codec import encode_json
from maitred.worker.outcome import sayable
from maitred.worker.run import Run

_making = Lock()


class RunningJob:
    """The job that the current function was called for.

    A function that blocks is not interrupted when its job is to stop. It looks at `cancelled` from time to
    time, or lets `wait_cancelled` pause for it, and returns; what it returns then is not kept.
    """

    # One is made for every run, and most are never looked at: what they show is found when it is asked for.
    __slots__ = ("_body", "_queue", "_run", "_stop", "_stopped")

    def __init__(self, queue: str, run: Run, body: dict[str, Any]) -> None:
        self._queue, self._run, self._body = queue, run, body
        self._stopped = False
        self._stop: Event | None = None

    @property
    def id(self) -> str:
        """The job's id."""
        return self._run.start.id

    @property
    def key(self) -> str:
        """The key that its submitter gave it."""
        return str(self._body["key"])

    @property
    def version(self) -> int:
        """Which version of the job this is."""
        return self._run.start.version

    @property
    def attempt(self) -> int:
        """Which try of this version, or of this stage, this is."""
        return self._run.start.attempt

    @property
    def metadata(self) -> dict[str, str]:
        """What its submitter noted of it."""
        return self._body.get("metadata") or {}

    @property
    def stage(self) -> str:
        """The stage that it is in; empty in a queue without stages."""
        need = self._run.start.need
        return need.removeprefix(STAGE) if need.startswith(STAGE) else ""

    def progress(self, fraction: float, message: str = "") -> None:
        """Tell whoever watches how far the work is, from 0 to 1, and what it does; from any thread."""
        part = float(fraction)
        if not 0 <= part <= 1:
            raise ValueError(f"progress is a fraction from 0 to 1, and not {fraction}")
        self._say("progress", encode_json({"fraction": part, "message": sayable(message)}))

    def say(self, text: str) -> None:
        """Tell whoever watches something, as a program would print it; from any thread."""
        self._say("log", text.encode(errors="backslashreplace"))

    @property
    def cancelled(self) -> bool:
        """Whether the run is to stop, for whatever reason: a cancel, its time limit, a worker that ends."""
        return self._stopped

    def wait_cancelled(self, timeout: float | None = None) -> bool:
        """Wait until the run is to stop, at most so many seconds; tell whether it is."""
        with _making:
            stop = self._stop = self._stop or Event()
        # It may have been told before there was anything to set.
        return self._stopped or stop.wait(timeout)

    def _tell_to_stop(self) -> None:
        """Let whoever looks or waits know that the run is to stop."""
        self._stopped = True
        if self._stop:
            self._stop.set()

    def __repr__(self) -> str:
        return f"RunningJob({self.id!r}, key={self.key!r}, version={self.version}, attempt={self.attempt})"

    def _say(self, stream: Stream, data: bytes) -> None:
        self._run.task.get_loop().call_soon_threadsafe(self._run.say, stream, data)


_current: ContextVar[RunningJob] = ContextVar("maitred_job")


def current_job() -> RunningJob:
    """Give the job that this handler runs; LookupError outside of one."""
    return _current.get()


def enter(queue: str, run: Run, body: dict[str, Any]) -> RunningJob:
    """Note the job for the context that runs it."""
    job = RunningJob(queue, run, body)
    _current.set(job)
    return job


def name_job(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Let what is logged while a job runs have its queue, its id and its lease; for structlog."""
    job = _current.get(None)
    if job is None:
        return event
    return {"queue": job._queue, "job": job.id, "lease": job._run.name, **event}  # noqa: SLF001 - see above


def tell_to_stop() -> None:
    """Let the job's function know that the run is to stop, wherever it looks."""
    _current.get()._tell_to_stop()  # noqa: SLF001 - not for those who only run the job
