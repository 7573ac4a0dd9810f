"""What happened in a queue, as watchers of everything are told it: each event with what is known of its job.

The same entries give the same events in the same order on every server, so that a watcher can go on after any
of them. What an event does not say itself is read, together for all entries and once for all watchers.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from maitred.core.batch import Batch
from maitred.core.events import (
    BatchChanged,
    Changed,
    Deleted,
    Ended,
    Freed,
    HouseChanged,
    Lowered,
    Said,
    Started,
)
from maitred.core.job import Submitter, View
from maitred.core.output import Chunk
from maitred.core.settings import Settings
from maitred.service.batch_document import batch_state_document
from maitred.service.bearings import Position
from maitred.service.caller import OF_OTHERS, Caller
from maitred.service.document import Document, class_name, result_document, state_document
from maitred.service.foresight import Foresight
from maitred.service.hindsight import as_told
from maitred.service.house_document import queue_document, worker_document
from maitred.service.moment import iso
from maitred.service.output import chunk_document, read_on, step_document
from maitred.service.recent import Happening, JobEvent, KeptEvent
from maitred.service.telling import Told
from maitred.store.port import Status, Store
from maitred.wire import decode_body

READ_AT_ONCE = 128
SPOKEN = frozenset({"output", "progress"})
_READ = (Started, Ended, Changed, Lowered, Said)


class News:
    """One event, and whose job it is of: others are told little of it, if `little` is something."""

    def __init__(
        self, event: str, data: Document, owner: Submitter | None = None, little: Document | None = None
    ) -> None:
        self.event, self.owner = event, owner
        self._whole, self._little = Told(event, data), Told(event, little) if little else None

    def told_to(self, caller: Caller) -> Told | None:
        """Give what a caller may hear of it."""
        return self._whole if self.owner is None or caller.owns(self.owner) else self._little


class QueueNews(News):
    """How a queue is; who may not see its workers is not told of them."""

    def __init__(self, queue: str, status: Status, waits: Document | None) -> None:
        self._queue = {"queue": queue, **queue_document(queue, status, waits)}
        workers = [worker_document(worker, status.settings) for worker in status.workers]
        super().__init__("queue", {**self._queue, "workers": workers})

    def told_to(self, caller: Caller) -> Told | None:
        """Give what a caller may hear of it."""
        return Told("queue", caller.seen_queue(self._queue)) if caller.limited else self._whole


@dataclass
class Known:
    """What was read to tell of some entries: jobs by record, what they said, batches, and the queue."""

    queue: str
    settings: Settings
    foresight: Foresight
    views: dict[int, View] = field(default_factory=dict)
    said: dict[int, dict[int, Chunk]] = field(default_factory=dict)
    batches: dict[str, Batch | None] = field(default_factory=dict)
    house: QueueNews | None = None

    async def read(
        self, store: Store, happenings: Sequence[Happening], wanted: Collection[str] | None
    ) -> None:
        """Read what is needed to tell of these; what jobs say only if that is wanted."""
        events = [event for each in happenings for event in each.events]
        records = list(dict.fromkeys(event.record for event in events if isinstance(event, _READ)))
        for first in range(0, len(records), READ_AT_ONCE):
            part = records[first : first + READ_AT_ONCE]
            found = await store.records(part)
            self.views |= found.views
            if len(found.views) < len(part):
                # What is gone is told by now, with its id.
                await self.foresight.hear_up_to(found.number)
        if wanted is None or not SPOKEN.isdisjoint(wanted):
            for record, first in _spoken(events).items():
                if view := self.views.get(record):
                    chunks, _ = await read_on(store, view.job.id, view.job.version, first - 1)
                    self.said[record] = {chunk.number: chunk for chunk in chunks}
        for id in dict.fromkeys(event.id for event in events if isinstance(event, BatchChanged)):
            self.batches[id] = await store.batch(id)
        if any(isinstance(event, HouseChanged) for event in events):
            self.house = QueueNews(self.queue, await store.status(), self.foresight.waits())

    @cached_property
    def gone(self) -> dict[int, str]:
        """The ids of jobs that were deleted since then."""
        events = (event for each in self.foresight.recent.all() for event in each.events)
        return {event.record: event.id for event in events if isinstance(event, Deleted)}


def _spoken(events: Iterable[KeptEvent]) -> dict[int, int]:
    """Give for each job that said something the number of the first piece."""
    found: dict[int, int] = {}
    for event in events:
        if isinstance(event, Said):
            found.setdefault(event.record, event.first)
    return found


def story(happenings: Sequence[Happening], known: Known) -> Iterator[tuple[Position, News]]:
    """Tell of entries in order; several changes of a batch, or of the queue, are told with the last one."""
    last = {
        event: (each.id, index)
        for each in happenings
        for index, event in enumerate(each.events)
        if isinstance(event, BatchChanged | HouseChanged)
    }
    for each in happenings:
        told = 0
        for index, event in enumerate(each.events):
            if isinstance(event, BatchChanged | HouseChanged):
                told += 1
                if last[event] == (each.id, index) and (news := _of_house(event, known)):
                    yield Position(each.id, told), news
                continue
            for news in _of_job(event, known):
                told += 1
                if news:
                    yield Position(each.id, told), news


def _of_house(event: BatchChanged | HouseChanged, known: Known) -> News | None:
    if isinstance(event, HouseChanged):
        return known.house
    batch, about = known.batches.get(event.id), {"queue": known.queue, "id": event.id}
    if batch is None:
        return News("batch", {**about, "state": "deleted"})
    whose = {"type": batch.submitter.type, "id": batch.submitter.id}
    facts = {**about, "external_id": batch.external_id or None, "submitter": whose}
    return News("batch", facts | batch_state_document(batch), batch.submitter)


def _of_job(event: JobEvent, known: Known) -> Iterator[News | None]:
    """Tell of one event of a job, with as many steps for it on every server; None is one that is left out."""
    view = known.views.get(event.record)
    if isinstance(event, Freed):
        return
    if isinstance(event, Deleted):
        yield News("state", {"queue": known.queue, "id": event.id, "state": "deleted", "phase": None})
    elif isinstance(event, Said):
        for number in range(event.first, event.last + 1):
            yield _said(known, view, number) if view else None
    elif view is None:
        yield _of_gone(event, known)
        if isinstance(event, Ended):
            yield None
    else:
        then = as_told(view, event, known.settings)
        yield _state(known, then)
        if isinstance(event, Ended):
            about = {"queue": known.queue, "id": view.job.id, "version": view.job.version}
            yield News("result", about | result_document(then), view.job.submitter)


def _of_gone(event: Started | Changed | Lowered | Ended, known: Known) -> News | None:
    """Tell of a job that was deleted since; of one that was swept nothing is known any more."""
    id = known.gone.get(event.record)
    if id is None or isinstance(event, Lowered):
        return None
    about = {"queue": known.queue, "id": id}
    match event:
        case Started():
            # What it was before it ran is not known, but that it ran.
            return News("state", {**about, "state": known.settings.stages[0], "phase": "running"})
        case Ended():
            return News("state", {**about, "state": "failed" if event.code else "completed", "phase": None})
        case Changed():
            state = "held" if event.phase == "held" else _stage(event, known.settings)
            return News("state", {**about, "state": state, "phase": "waiting" if state != "held" else None})


def _stage(event: Changed, settings: Settings) -> str:
    return settings.stages[event.stage - 1] if 0 < event.stage <= len(settings.stages) else "pending"


def _state(known: Known, view: View) -> News:
    job, settings = view.job, known.settings
    little = {
        "queue": known.queue,
        "id": job.id,
        "band": job.band.name.lower(),
        "class": None if job.elastic else class_name(job.level, settings),
        **state_document(view, settings),
        "position": view.position,
    }
    whole = {
        **little,
        "key": decode_body(job.body)["key"],
        "submitter": {"type": job.submitter.type, "id": job.submitter.id},
        "batch": job.batch or None,
        "priority": job.priority,
        "created_at": iso(job.created_at),
    }
    others = {name: little[name] for name in ("queue", *OF_OTHERS)}
    return News("state", whole, job.submitter, others)


def _said(known: Known, view: View, number: int) -> News | None:
    """Tell of a piece that is still kept and was read; what a session's client is told is not for others."""
    chunk = known.said.get(view.job.record, {}).get(number)
    if chunk is None or chunk.stream == "control":
        return None
    about = {"queue": known.queue, "id": view.job.id, "version": view.job.version}
    if chunk.stream == "progress":
        return News("progress", about | step_document(chunk), view.job.submitter)
    return News("output", about | chunk_document(chunk), view.job.submitter)
