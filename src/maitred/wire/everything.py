"""What a watcher of everything is told: typed, as the stream of all queues has it."""

from datetime import datetime
from typing import Literal, get_args

from pydantic import Field

from maitred.wire.batch_document import BatchState
from maitred.wire.body import SubmitterBody
from maitred.wire.document import Band
from maitred.wire.events import Heard, JobOutput, JobProgress, JobResult, JobState
from maitred.wire.house_document import QueueDocument, WorkerDocument


class QueueHeard(Heard):
    """Something that happened in a queue; `event_id` is where the stream can be gone on from."""

    event_id: str | None = Field(None, description="Only in the client: the id of the event.")
    queue: str


class QueueEvent(QueueHeard, QueueDocument):
    """How a queue is: at first, and when its pause, its holds, its settings or its workers changed."""

    event: Literal["queue"] = "queue"
    workers: list[WorkerDocument] | None = Field(None, description="Not for a submitter's key.")


class JobStateEvent(QueueHeard, JobState):
    """A job was submitted, changed, moved, started, ended, held or deleted.

    Of others' jobs a submitter's key hears only id, band, class, state and position.
    """

    id: str = Field(description="The job's.")
    band: Band | None = None
    class_: str | None = Field(None, alias="class")
    position: int | None = Field(None, description="As it was when this was read; null if it does not wait.")
    key: str | None = None
    submitter: SubmitterBody | None = None
    batch: str | None = None
    priority: int | None = None
    created_at: datetime | None = None


class JobOutputEvent(QueueHeard, JobOutput):
    """A piece of what a job printed or said."""

    id: str = Field(description="The job's.")
    version: int


class JobProgressEvent(QueueHeard, JobProgress):
    """How far a job is."""

    id: str = Field(description="The job's.")
    version: int


class JobResultEvent(QueueHeard, JobResult):
    """How a job ended."""

    id: str = Field(description="The job's.")
    version: int


class BatchNewsEvent(QueueHeard, BatchState):
    """A batch was made, changed, reported or deleted."""

    event: Literal["batch"] = "batch"
    id: str = Field(description="The batch's.")
    external_id: str | None = None
    submitter: SubmitterBody | None = None


class QueueResetEvent(QueueHeard):
    """What happened in a queue before cannot be told any more; how the queue is follows."""

    event: Literal["reset"] = "reset"


EverythingEvent = (
    QueueEvent
    | JobStateEvent
    | JobOutputEvent
    | JobProgressEvent
    | JobResultEvent
    | BatchNewsEvent
    | QueueResetEvent
)

EventName = Literal["queue", "state", "output", "progress", "result", "batch", "reset"]

EVERYTHING: dict[str, type[EverythingEvent]] = {
    kind.model_fields["event"].default: kind for kind in get_args(EverythingEvent)
}
