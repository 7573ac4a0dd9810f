"""What happened lately: the last entries of a queue's events, for watchers that come back.

It holds as many entries as the store keeps, without a gap, so that a watcher that names the last one it saw
can be told all that came after, or that this is not known any more.
"""

from bisect import bisect_left
from collections import deque
from itertools import islice
from typing import NamedTuple

from maitred.core.events import (
    BatchChanged,
    Changed,
    Deleted,
    Ended,
    Entry,
    Event,
    Freed,
    HouseChanged,
    Lowered,
    Said,
    Started,
)

KEPT = 2_048

EntryId = tuple[int, int]
JobEvent = Started | Freed | Ended | Changed | Lowered | Said | Deleted
_OF_JOBS = (Started, Freed, Ended, Changed, Lowered, Said, Deleted)
KeptEvent = JobEvent | BatchChanged | HouseChanged
_KEPT_EVENTS = (*_OF_JOBS, BatchChanged, HouseChanged)


def entry_id(text: str) -> EntryId:
    """Read the id of an entry, such as `1726000000000-3`; ValueError if it is none."""
    time, _, number = text.partition("-")
    return int(time), int(number)


def show_entry(id: EntryId) -> str:
    """Write what `entry_id` read."""
    return f"{id[0]}-{id[1]}"


def of_job(event: Event) -> JobEvent | None:
    """Give an event that a watcher of its job should hear of."""
    return event if isinstance(event, _OF_JOBS) else None


class Happening(NamedTuple):
    """An entry as it is kept: its id, when it was, and what watchers are told of it."""

    id: EntryId
    now: int
    events: list[KeptEvent]


class RecentEvents:
    """The last entries; all that came after `since` is known, and `number` is that of the last one."""

    def __init__(self) -> None:
        """Begin with nothing known."""
        self.since: EntryId | None = None
        self.number = 0
        self._entries: deque[Happening] = deque()

    @property
    def last(self) -> EntryId:
        """Up to where all is known."""
        return self._entries[-1].id if self._entries else self.since or (0, 0)

    def begin(self, since: EntryId | None, number: int = 0) -> None:
        """Forget all, and know what comes after this entry; None: from the first one on that comes."""
        self._entries.clear()
        self.since, self.number = since, number

    def add(self, entry: Entry) -> None:
        """Hear of the next entry."""
        this = entry_id(entry.id)
        if self.since is None or (self.number and entry.number != self.number + 1):
            self.begin(this)
        self.number = entry.number
        kept = [event for event in entry.events if isinstance(event, _KEPT_EVENTS)]
        self._entries.append(Happening(this, entry.now, kept))
        if len(self._entries) > KEPT:
            self.since = self._entries.popleft().id

    def knows(self, last: EntryId) -> bool:
        """Tell whether all that came after this entry is known."""
        return self.since is not None and last >= self.since

    def following(self, last: EntryId, limit: int) -> list[Happening]:
        """Give this entry, if it is kept, and those after it, until they have so many events together."""
        first = bisect_left(self._entries, last, key=lambda each: each.id)
        found, events = list[Happening](), 0
        for each in islice(self._entries, first, None):
            found.append(each)
            events += len(each.events)
            # The first one may be told already, and alone would not lead on.
            if events >= limit and len(found) > 1:
                break
        return found

    def all(self) -> list[Happening]:
        """Give all entries that are kept."""
        return list(self._entries)

    def after(self, last: EntryId, record: int) -> list[tuple[EntryId, int, JobEvent]] | None:
        """Give what happened to a job after an entry, and when; None if that is not known any more."""
        if not self.knows(last):
            return None
        return [
            (this, now, event)
            for this, now, events in self._entries
            if this > last
            for event in events
            if isinstance(event, _OF_JOBS) and event.record == record
        ]
