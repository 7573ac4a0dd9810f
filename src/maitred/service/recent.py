"""What happened to jobs lately: the last entries of a queue's events, for watchers that come back.

It holds as many entries as the store keeps, without a gap, so that a watcher that names the last one it saw
can be told all that came after, or that this is not known any more.
"""

from collections import deque

from maitred.core.events import Changed, Deleted, Ended, Entry, Event, Lowered, Said, Started

KEPT = 2_048

EntryId = tuple[int, int]
JobEvent = Started | Ended | Changed | Lowered | Said | Deleted
_OF_JOBS = (Started, Ended, Changed, Lowered, Said, Deleted)


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


class RecentEvents:
    """The last entries; all that came after `since` is known."""

    def __init__(self) -> None:
        """Begin with nothing known."""
        self.since: EntryId | None = None
        self._entries: deque[tuple[EntryId, int, list[JobEvent]]] = deque()
        self._number = 0

    def begin(self, since: EntryId | None) -> None:
        """Forget all, and know what comes after this entry; None: from the first one on that comes."""
        self._entries.clear()
        self.since = since
        self._number = 0

    def add(self, entry: Entry) -> None:
        """Hear of the next entry."""
        this = entry_id(entry.id)
        if self.since is None or (self._number and entry.number != self._number + 1):
            self.begin(this)
        self._number = entry.number
        self._entries.append(
            (this, entry.now, [event for event in entry.events if isinstance(event, _OF_JOBS)])
        )
        if len(self._entries) > KEPT:
            self.since = self._entries.popleft()[0]

    def after(self, last: EntryId, record: int) -> list[tuple[EntryId, int, JobEvent]] | None:
        """Give what happened to a job after an entry, and when; None if that is not known any more."""
        if self.since is None or last < self.since:
            return None
        return [
            (this, now, event)
            for this, now, events in self._entries
            if this > last
            for event in events
            if event.record == record
        ]
