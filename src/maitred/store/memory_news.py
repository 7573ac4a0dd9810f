"""What the reference store tells: floor and lanes at one moment, and what changed since.

Nothing is told while it happens. Whoever listens is told how the state differs from the one they know, so
that the reference needs no word for each change, and can be held against stores that have.
"""

import asyncio
from abc import abstractmethod
from collections import Counter
from contextlib import suppress

from maitred.core.events import Entry, Event, HouseChanged, changes, order_of
from maitred.core.floor import Hold, Worker
from maitred.core.occupancy import Running
from maitred.core.settings import SECOND, Settings
from maitred.core.snapshot import Snapshot, take_snapshot
from maitred.store.memory_output import OutputVerbs
from maitred.store.port import Survey


class NewsVerbs(OutputVerbs):
    """The part of a queue in memory that servers look at and listen to."""

    def __init__(self) -> None:
        """Begin with nobody who listens."""
        self._listened_until = 0
        self._known: Snapshot | None = None
        self._known_settings: Settings | None = None
        self._news: list[Entry] = []
        self._told = 0
        self._changed = asyncio.Event()

    @property
    @abstractmethod
    def exists(self) -> bool:
        """Tell whether the queue was configured."""

    async def survey(self, listen: float) -> Survey:
        """Show floor and lanes at one moment, and begin to listen."""
        house = self._house
        self._note_changes()
        if self._time() >= self._listened_until:
            # What changed while nobody listened was not told: a gap in the numbers before this entry says so.
            self._told += 1
            self._tell([HouseChanged()])
        self._listened_until = self._time() + round(listen * SECOND)
        self._known, self._known_settings = take_snapshot(house), house.settings
        crews = {w.serves for w in house.floor.workers.values() if not w.draining}
        return Survey(
            now=self._time(),
            settings=house.settings,
            paused=house.paused,
            limits=tuple(house.floor.limits),
            used=tuple(house.floor.used),
            waiting=len(house.waiting()),
            crews=tuple(tuple(sorted(crew)) for crew in sorted(crews, key=sorted)),
            lanes=dict(Counter(str(place.lane) for place in house.line)),
            runs={
                hold.record: self._running(worker, hold)
                for worker in house.floor.workers.values()
                for hold in worker.holds.values()
            },
            last_id=self._news[-1].id if self._news else "0-0",
            last_number=self._told,
        )

    def _running(self, worker: Worker, hold: Hold) -> Running:
        job = self._house.jobs.get(hold.record)
        return Running(
            hold.start,
            hold.level,
            hold.duration,
            hold.kind,
            job.need if job else "",
            self._time() if hold.stopping else None,
            worker.draining,
        )

    async def places(self, lane: str, after: bytes, limit: int) -> list[bytes]:
        """Give the order of some places of a lane."""
        orders = sorted(order_of(place) for place in self._house.line if str(place.lane) == lane)
        return [order for order in orders if order > after][:limit]

    async def news(self, after: str, timeout: float) -> list[Entry]:
        """Wait for what changed."""
        self._note_changes()
        if not (found := self._after(after)):
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._changed.wait()
            return self._after(after)
        return found

    def _after(self, id: str) -> list[Entry]:
        number = int(id.partition("-")[2])
        return [entry for entry in self._news if entry.number > number]

    def _note_changes(self) -> None:
        """Compare the state with the one that listeners know, and tell the difference."""
        if not self.exists or self._known is None or self._time() >= self._listened_until:
            return
        state = take_snapshot(self._house)
        events = changes(self._known, state)
        if self._house.settings != self._known_settings and HouseChanged() not in events:
            events.append(HouseChanged())
        self._known, self._known_settings = state, self._house.settings
        if events:
            self._tell(events)

    def _tell(self, events: list[Event]) -> None:
        """Add an entry, named as a server does it: by the milliseconds of its clock, and a number."""
        self._told += 1
        now = self._house.now
        entry = Entry(f"{now // 1000}-{self._told}", self._told, now, events)
        self._news = [*self._news[-2047:], entry]
        self._changed.set()

    def _time(self) -> int:
        return max(self._house.now, self._clock())
