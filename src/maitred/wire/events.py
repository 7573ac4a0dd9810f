"""What a watcher of a job is told: typed, as the stream of events has it."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from maitred.wire.document import Estimate, Hold, Reason


class AnyEvent(BaseModel):
    """Something that a watcher hears; `id` where the stream can be gone on from."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    id: str | None = Field(None, description="Only in the client: the id of the event.")

    @property
    def is_last(self) -> bool:
        """Tell whether nothing comes after this event."""
        return False


class StateEvent(AnyEvent):
    """The state of a job, at first and whenever it changes."""

    event: Literal["state"] = "state"
    state: str = Field(description="As in the document, or `deleted`.")
    phase: Literal["waiting", "running"] | None = None
    stage: str | None = None
    version: int
    attempt: int = 0
    worker: str | None = None
    code: str | None = None
    message: str | None = None
    duration: float | None = Field(None, description="Seconds, as in the document.")
    holds: list[Hold] = Field([], description="What holds it, by whom and why.")

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


class ResultEvent(AnyEvent):
    """How a job ended: the last event."""

    event: Literal["result"] = "result"
    result: Any = None
    code: str | None = None
    message: str | None = None

    @property
    def is_last(self) -> bool:
        """A result is the end."""
        return True


class ResetEvent(AnyEvent):
    """What happened before cannot be told any more; the present state follows."""

    event: Literal["reset"] = "reset"


WatchEvent = StateEvent | PlaceEvent | ResultEvent | ResetEvent

EVENTS: dict[str, type[StateEvent | PlaceEvent | ResultEvent | ResetEvent]] = {
    "state": StateEvent,
    "place": PlaceEvent,
    "result": ResultEvent,
    "reset": ResetEvent,
}
