"""What a watcher of a job is told: typed, as the stream of events has it."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from maitred.wire.answer import Hold
from maitred.wire.document import Estimate, Reason


class Heard(BaseModel):
    """Something that a watcher hears."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    @property
    def is_last(self) -> bool:
        """Tell whether nothing comes after this event."""
        return False


class AnyEvent(Heard):
    """Something that a watcher of one job or batch hears; `id` where the stream can be gone on from."""

    id: str | None = Field(None, description="Only in the client: the id of the event.")


class JobState(Heard):
    """The state of a job."""

    event: Literal["state"] = "state"
    state: str = Field(description="As in the document, or `deleted`.")
    phase: Literal["waiting", "running"] | None = None
    stage: str | None = None
    version: int | None = None
    attempt: int = 0
    worker: str | None = None
    code: str | None = None
    message: str | None = None
    duration: float | None = Field(None, description="Seconds, as in the document.")
    holds: list[Hold] = Field([], description="What holds it, by whom and why.")


class StateEvent(AnyEvent, JobState):
    """The state of a job, at first and whenever it changes."""

    version: int

    @property
    def is_last(self) -> bool:
        """A job that was deleted has no result."""
        return self.state == "deleted"


class PlaceEvent(AnyEvent):
    """The place of a waiting job: told at first, and again when it matters."""

    event: Literal["place"] = "place"
    position: int | None = None
    estimate: Estimate | None = None
    waiting_for: Reason | None = None


class JobOutput(Heard):
    """A piece of what a job printed or said; pieces are numbered for each version of a job, from 1."""

    event: Literal["output"] = "output"
    number: int
    at: datetime
    attempt: int
    stream: Literal["stdout", "stderr", "log", "tty"]
    text: str
    cut: int = Field(0, description="So many bytes before this piece were left out.")


class OutputEvent(AnyEvent, JobOutput):
    """A piece of what the job printed or said."""


class JobProgress(Heard):
    """How far a job is, by its own word."""

    event: Literal["progress"] = "progress"
    number: int
    at: datetime
    attempt: int
    fraction: float
    message: str = ""


class ProgressEvent(AnyEvent, JobProgress):
    """How far the job is."""


class JobResult(Heard):
    """How a job ended."""

    event: Literal["result"] = "result"
    result: Any = None
    code: str | None = None
    message: str | None = None


class ResultEvent(AnyEvent, JobResult):
    """How the job ended: the last event."""

    @property
    def is_last(self) -> bool:
        """A result is the end."""
        return True


class ResetEvent(AnyEvent):
    """What happened before cannot be told any more; the present state follows."""

    event: Literal["reset"] = "reset"


WatchEvent = StateEvent | PlaceEvent | OutputEvent | ProgressEvent | ResultEvent | ResetEvent

EVENTS: dict[str, type[StateEvent | PlaceEvent | OutputEvent | ProgressEvent | ResultEvent | ResetEvent]] = {
    "state": StateEvent,
    "place": PlaceEvent,
    "output": OutputEvent,
    "progress": ProgressEvent,
    "result": ResultEvent,
    "reset": ResetEvent,
}
