"""What a handler can know about the job that it runs, and say of it while it runs."""

from collections.abc import MutableMapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Any

from maitred.core.output import Stream
from maitred.core.stages import STAGE
from maitred.wire.codec import encode_json
from maitred.worker.outcome import sayable
from maitred.worker.run import Run

_making = Lock()


class _Bell:
    """Rings once, for whoever looks or waits in any thread; most runs end without either."""

    __slots__ = ("_event", "rung")

    def __init__(self) -> None:
        self.rung = False
        self._event: Event | None = None

    def ring(self) -> None:
        self.rung = True
        if self._event:
            self._event.set()

    def wait(self, timeout: float | None) -> bool:
        with _making:
            event = self._event = self._event or Event()
        # It may have rung before there was anything to set.
        return self.rung or event.wait(timeout)


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
    stage: str
    _queue: str = field(repr=False, compare=False)
    _run: Run = field(repr=False, compare=False)
    _stop: _Bell = field(repr=False, compare=False)

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
        return self._stop.rung

    def wait_cancelled(self, timeout: float | None = None) -> bool:
        """Wait until the run is to stop, at most so many seconds; tell whether it is."""
        return self._stop.wait(timeout)

    def _say(self, stream: Stream, data: bytes) -> None:
        self._run.task.get_loop().call_soon_threadsafe(self._run.say, stream, data)


_current: ContextVar[RunningJob] = ContextVar("maitred_job")


def current_job() -> RunningJob:
    """Give the job that this handler runs; LookupError outside of one."""
    return _current.get()


def enter(queue: str, run: Run, body: dict[str, Any]) -> RunningJob:
    """Note the job for the context that runs it."""
    start = run.start
    stage = start.need.removeprefix(STAGE) if start.need.startswith(STAGE) else ""
    job = RunningJob(
        start.id,
        body["key"],
        start.version,
        start.attempt,
        body.get("metadata") or {},
        stage,
        queue,
        run,
        _Bell(),
    )
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
    _current.get()._stop.ring()  # noqa: SLF001 - not for those who only run the job
