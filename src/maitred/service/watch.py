"""One watcher of one job: what it is told, in order, and where it can go on when it comes back.

A version of a job is followed to its end. Each event but `place` has an id made of the entry that it comes
from, the version, a mark of the state that was told last, and the number of the last piece of output, so that
a watcher that comes back hears what it has not heard, and nothing twice. A `place` is good for the moment.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self
from zlib import crc32

from maitred.core.estimate import Estimate
from maitred.core.events import Freed, Said, Started
from maitred.core.job import Band, Phase, View
from maitred.core.output import Chunk
from maitred.core.settings import SECOND, Settings
from maitred.service.document import Document, place_document, result_document, state_document
from maitred.service.hindsight import as_started
from maitred.service.lanes import standing
from maitred.service.output import chunk_document, step_document
from maitred.service.recent import EntryId, JobEvent, entry_id, show_entry
from maitred.service.telling import Telling, Told
from maitred.wire import encode_json

_END = "end"

# What is expected is told again when it moved by a second and by a tenth of what is left; a promise, by this.
_MOVED = SECOND
_PROMISE_MOVED = 10_000


class Mark(NamedTuple):
    """How far a watcher came: the entry, the version that it follows, the state and the output told last."""

    entry: EntryId
    version: int
    digest: str
    spoken: int

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Read the id of an event; None if it is none."""
        try:
            entry, version, digest, spoken = text.split(".")
            return cls(entry_id(entry), int(version), digest, int(spoken))
        except ValueError:
            return None

    @property
    def at_end(self) -> bool:
        """Tell whether all was told."""
        return self.digest == _END


class Heard(NamedTuple):
    """Something that happened to the job: in which entry, when, and what."""

    entry: EntryId
    now: int
    event: JobEvent


class Place(NamedTuple):
    """What was told of a place."""

    position: int | None
    code: str | None
    estimate: Estimate | None

    def matters_after(self, before: "Place | None") -> bool:
        """Tell whether a watcher who knows that should hear of this."""
        if before is None or self[:2] != before[:2]:
            return True
        new, old = self.estimate, before.estimate
        if new is None or old is None:
            return new is not old
        left = max(0, (new.expected or 0) - new.as_of)
        return _moved(new.expected, old.expected, max(_MOVED, left // 10)) or _moved(
            new.at_latest, old.at_latest, _PROMISE_MOVED
        )


def _states(heard: Sequence[Heard]) -> list[Heard]:
    """Give what was heard of the job's state."""
    return [each for each in heard if not isinstance(each.event, Said)]


def _moved(new: int | None, old: int | None, far: int) -> bool:
    if new is None or old is None:
        return new is not old
    return abs(new - old) > far


@dataclass(eq=False)
class Watch(Telling):
    """A job that is watched, as it was seen last.

    `view` has all that happened before the time `seen`; what was told last came from the entry `at`, and the
    last piece of output that was told has the number `spoken`.
    """

    view: View
    settings: Settings
    at: EntryId
    seen: int = 0
    digest: str = ""
    spoken: int = 0
    place: Place | None = None
    place_told: float = 0.0
    attended: float = 0.0
    heard: list[Heard] = field(default_factory=list)

    @property
    def record(self) -> int:
        """The record of the version that is followed."""
        return self.view.job.record

    @property
    def waits(self) -> bool:
        """Tell whether the job waits, as far as is known."""
        return self.view.job.phase is Phase.WAITING

    @property
    def keeps(self) -> bool:
        """Tell whether the job goes on since it is watched; a session goes on for its own client only."""
        return bool(self.view.job.abandon) and self.view.job.band is not Band.INTERACTIVE

    def standing(self) -> tuple[str, bytes]:
        """Give the lane and the order of its place."""
        return standing(self.view)

    def needs_view(self) -> bool:
        """Tell whether the job has to be read before what was heard can be told."""
        states = _states(self.heard)
        return bool(states) and not isinstance(states[-1].event, Started)

    def needs_output(self, view: View | None) -> bool:
        """Tell whether what the job said has to be read before what was heard can be told.

        An end that is seen before it was heard of may have last words that were not heard of either.
        """
        ended = view is not None and view.job.phase is Phase.ENDED and view.job.stage > 0
        if ended and not any(isinstance(each.event, Freed) for each in self.heard):
            return True
        return any(isinstance(each.event, Said) and each.event.last > self.spoken for each in self.heard)

    def tell_heard(self, count: int, view: View | None, settings: Settings, chunks: Sequence[Chunk]) -> None:
        """Tell so much of what was heard; the rest was heard after the job was read.

        `view` is the job as it was read, None if it is gone or was not read. `chunks` are what it said after
        what was told of that.
        """
        heard, self.heard = self.heard[:count], self.heard[count:]
        states, self.settings = _states(heard), settings
        for each in heard:
            if isinstance(each.event, Started) and each.now >= self.seen:
                self._tell_started(each.event, each.entry)
            elif isinstance(each.event, Said):
                last = each.event.last
                self.tell_output([chunk for chunk in chunks if chunk.number <= last], each.entry)
        self.tell_output(chunks, heard[-1].entry if heard else self.at)
        if not states or isinstance(states[-1].event, Started):
            return
        if view is None:
            self.tell_deleted(states[-1].entry)
        else:
            self.tell_state(view, settings, states[-1].entry)

    def tell_output(self, chunks: Sequence[Chunk], entry: EntryId) -> None:
        """Tell what the job said and was not told yet."""
        for chunk in chunks:
            if chunk.number <= self.spoken:
                continue
            self.spoken = chunk.number
            if chunk.stream == "progress":
                self._tell(Told("progress", step_document(chunk), self._id(entry, self.digest)))
            elif chunk.stream != "control":
                self._tell(Told("output", chunk_document(chunk), self._id(entry, self.digest)))

    def tell_state(self, view: View, settings: Settings, entry: EntryId) -> None:
        """Tell the state of the job as it is, if that is news; and the result, once its run is over."""
        self.view, self.settings, self.seen = view, settings, view.now
        if view.job.phase is not Phase.WAITING:
            # When it waits again, its place is news, be it the same.
            self.place = None
        self._tell_state(state_document(view, settings), entry)
        if view.job.phase is Phase.ENDED and not view.stopping:
            self._tell(Told("result", result_document(view), self._id(entry, _END)))
            self.close()

    def tell_deleted(self, entry: EntryId) -> None:
        """Tell that the job is gone."""
        gone = {"state": "deleted", "phase": None, "version": self.view.job.version}
        self._tell(Told("state", gone, self._id(entry, _END)))
        self.close()

    def tell_reset(self) -> None:
        """Tell that something may have happened that cannot be told any more."""
        self.digest, self.place = "", None
        self._tell(Told("reset", {}))

    def tell_place(self, place: Place, view: View) -> None:
        """Tell position, estimate and reason; one that was not fetched yet is replaced."""
        self.place = place
        document = place_document(view, self.settings, place.estimate)
        self._take_back("place")
        self._tell(Told("place", document))

    def _tell_started(self, event: Started, entry: EntryId) -> None:
        """Tell of a start from the event alone, and know the job as running."""
        self.view = as_started(self.view, event, self.settings)
        self.place = None
        self._tell_state(state_document(self.view, self.settings), entry)

    def _tell_state(self, document: Document, entry: EntryId) -> None:
        digest = f"{crc32(encode_json(document)):08x}"
        if digest != self.digest:
            self.digest = digest
            self._tell(Told("state", document, self._id(entry, digest)))

    def _id(self, entry: EntryId, digest: str) -> str:
        self.at = max(self.at, entry)
        return f"{show_entry(self.at)}.{self.view.job.version}.{digest}.{self.spoken}"
