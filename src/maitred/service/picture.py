"""A server's picture of line and floor: taken once from the store, then kept by what the store tells.

Entries are applied in order and may be told again without harm. The floor is looked at anew now and then, and
takes effect exactly at the entry up to which the store says that it holds, so that no start is counted twice.
"""

from collections.abc import Callable
from typing import Any

from maitred.core.events import (
    Added,
    Ended,
    Entry,
    Event,
    Freed,
    HouseChanged,
    Lowered,
    Removed,
    Started,
    Stopping,
    Taken,
)
from maitred.core.floor import Kind
from maitred.core.occupancy import Occupancy, Running
from maitred.service.experience import Experience
from maitred.service.lanes import Lanes, came_at
from maitred.service.recent import EntryId, entry_id
from maitred.store.port import Survey

# A promise counts with these delays between processes: from a stop that is asked for to the units that come
# back, beyond the job's own time to stop, and of the timer that asks for it at a time limit.
STOP_MARGIN = 250_000
TIMER_SLACK = 250_000


class Picture:
    """Lanes and floor of one queue as they were at the entry `last`."""

    def __init__(self, survey: Survey, experience: Experience) -> None:
        """Begin with the floor; the lanes are filled by the caller, and the rest is told."""
        self.lanes = Lanes()
        self.now = survey.now
        self.last = entry_id(survey.last_id)
        self.number = survey.last_number
        self.changed_house = False
        self.surprised = False
        self._experience = experience
        self._pending: Survey | None = None
        self._codes: dict[int, str] = {}
        self._appliers: dict[type, Callable[[Any, int], None]] = {
            Removed: self._remove,
            Started: self._start,
            Lowered: self._lower,
            Stopping: self._stop,
            Freed: self._free,
            HouseChanged: self._house,
        }
        self.runs: dict[int, Running] = {}
        self._look(survey)

    @property
    def settled(self) -> bool:
        """Tell whether floor and lanes are of the same moment."""
        return self._pending is None

    def look(self, survey: Survey) -> None:
        """Take the floor anew, as soon as all is applied that happened before the survey."""
        self._pending = survey
        self._settle(self.last)

    def follow(self, entry: Entry, added: Callable[[str, bytes, int], None]) -> bool:
        """Apply what one call changed; tell whether anything but places that were added has changed.

        `added` is called for each of those. The entry must be the next one. If anybody started who stood not
        in line, or the house changed, nobody could count with it: then the picture is `surprised`.
        """
        this = entry_id(entry.id)
        self._settle(this, before=True)
        self.now = max(self.now, entry.now)
        more, started, taken = False, 0, 0
        # A run that ended by itself says so in the entry that frees its units, before that or after.
        self._codes = {event.record: event.code for event in entry.events if isinstance(event, Ended)}
        for event in entry.events:
            if isinstance(event, Added):
                self.lanes[event.lane].add(event.order)
                added(event.lane, event.order, entry.now)
            elif isinstance(event, Taken):
                taken += self._take(event, entry.now)
                more = True
            else:
                started += isinstance(event, Started) and event.kind is not Kind.INTERACTIVE
                more |= self._apply(event, entry.now)
        self.surprised = started > taken or any(isinstance(event, HouseChanged) for event in entry.events)
        freed = {event.record for event in entry.events if isinstance(event, Freed)}
        carried = sum(isinstance(event, Started) and event.record in freed for event in entry.events)
        if started - taken - carried > 0:
            self._note_unqueued(entry, started - taken - carried, freed)
        self.last, self.number = this, entry.number
        self._settle(this)
        return more

    def _note_unqueued(self, entry: Entry, count: int, freed: set[int]) -> None:
        """Count those who found a free slot and started without standing in line.

        A job's next stage is no new start. Which of several in one entry stood in line is not told.
        """
        levels = [
            event.level
            for event in entry.events
            if isinstance(event, Started) and event.kind is not Kind.INTERACTIVE and event.record not in freed
        ]
        for level in levels[:count]:
            self._experience.waited(entry.now, entry.now, level)

    def occupancy(self, now: int) -> Occupancy:
        """Give the floor as the planner sees it."""
        survey = self.survey
        settings = survey.settings
        crews = survey.crews
        return Occupancy(
            now=max(now, self.now),
            classes=settings.levels,
            slots=survey.limits[0] if survey.limits else 0,
            running=list(self.runs.values()),
            kill_after=settings.kill_after + STOP_MARGIN,
            slack=TIMER_SLACK,
            needs=frozenset(need for crew in crews for need in crew),
            alike=len(crews) <= 1,
            paused=survey.paused is not None,
            stages=len(settings.stages),
            eager=settings.eager,
        )

    def used(self) -> tuple[int, ...]:
        """Count the units of each level that are held."""
        levels = [run.level for run in self.runs.values()]
        return tuple(sum(level >= k for level in levels) for k, _ in enumerate(self.survey.limits, 1))

    def serves(self, need: str) -> bool:
        """Tell whether any live worker serves this need."""
        return any(need in crew for crew in self.survey.crews)

    def _look(self, survey: Survey) -> None:
        known = self.runs
        self.survey = survey
        self.runs = {record: _stopping_since(run, known.get(record)) for record, run in survey.runs.items()}
        self.now = max(self.now, survey.now)

    def _settle(self, at: EntryId, *, before: bool = False) -> None:
        """Let a survey take effect once everything is applied up to its entry."""
        pending = self._pending
        if pending is None:
            return
        last = entry_id(pending.last_id)
        if at > last if before else at >= last:
            self._look(pending)
            self._pending = None

    def _take(self, event: Taken, now: int) -> int:
        lane = self.lanes[event.lane]
        places = lane.take(event.through)
        for order in places:
            self._experience.waited(came_at(lane.band, order), now, lane.waiting.level)
            self._experience.taken((event.lane, order), now)
        return len(places)

    def _apply(self, event: Event, now: int) -> bool:
        """Apply one event; tell whether an estimate may change by it."""
        apply = self._appliers.get(type(event))
        if apply is None:
            return False
        apply(event, now)
        return True

    def _remove(self, event: Removed, _now: int) -> None:
        self.lanes[event.lane].remove(event.order)
        self._experience.gone((event.lane, event.order))

    def _start(self, event: Started, _now: int) -> None:
        self.runs[event.record] = Running(event.start, event.level, event.duration, event.kind, event.need)

    def _lower(self, event: Lowered, _now: int) -> None:
        if run := self.runs.get(event.record):
            self.runs[event.record] = run._replace(level=event.level, granted=event.duration)

    def _stop(self, event: Stopping, now: int) -> None:
        run = self.runs.get(event.record)
        if run and run.stopping is None:
            self.runs[event.record] = run._replace(stopping=now)

    def _free(self, event: Freed, now: int) -> None:
        if run := self.runs.pop(event.record, None):
            self._experience.ran(run, now, self._codes.get(event.record))

    def _house(self, _event: HouseChanged, _now: int) -> None:
        self.changed_house = True


def _stopping_since(run: Running, known: Running | None) -> Running:
    """Keep when a stop was asked for: a store that is looked at tells only that it was."""
    if run.stopping is None or known is None or known.stopping is None or known.start != run.start:
        return run
    return run._replace(stopping=known.stopping)
