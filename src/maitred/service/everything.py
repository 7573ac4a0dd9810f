"""Watching everything: one stream of what happens in all queues that a key may see.

Each queue has a teller. It has no list of what is to be told: a watcher has a position in each queue's recent
events, and is told what comes after it. So whoever comes back, comes late or reads slowly goes through the
same door, and what waits for a reader is bounded. One that falls behind all that is kept is told `reset`.
"""

import asyncio
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import structlog

from maitred.core.events import Entry
from maitred.core.settings import SECOND
from maitred.errors import MaitredError
from maitred.service.bearings import Bearings, Position, show_bearings
from maitred.service.caller import Caller
from maitred.service.foresight import Foresight
from maitred.service.story import Known, News, QueueNews, story
from maitred.service.telling import Telling, Told
from maitred.store.port import Store

# How many events are told at once, and for how many seconds they gather at least.
AT_ONCE = 500
PAUSE = 0.05
# A reader for whom so many bytes wait is told no more until it has read half of them.
FULL = 512 << 10
# All that happened longer ago than this was heard by every server that hears of its queue at all: one that
# was made just now is seen within half of this, and clocks that were set back a little do no harm.
MARGIN = 10 * SECOND
BASE_EVERY = 1.0
TROUBLE = 1.0
# Where somebody is whose id cannot be read.
NOWHERE = Bearings(-1, {})

_log = structlog.get_logger()


@dataclass(eq=False)
class EverythingWatch(Telling):
    """One watcher of all queues that its caller may see, or of some; None in `wanted` is all events."""

    everything: "Everything"
    caller: Caller
    queues: Collection[str] | None = None
    wanted: Collection[str] | None = None
    base: int = 0
    positions: dict[str, Position] = field(default_factory=dict)
    held_back: bool = False
    _based: float = 0.0

    def takes(self) -> bool:
        """Tell whether more can be told; while enough waits for its reader it is held back."""
        self.held_back = self.held_back or self.unread > FULL
        return not self.held_back

    def sees(self, queue: str) -> bool:
        """Tell whether a queue is watched."""
        return self.caller.may_use(queue) and (self.queues is None or queue in self.queues)

    async def next(self, timeout: float) -> Told | None:
        """Wait for the next event, as any watcher does; a slow reader is told more when it has read."""
        told = await super().next(timeout)
        if self.held_back and self.unread <= FULL // 2:
            self.held_back = False
            self.everything.wake(self)
        return told

    def tell(self, queue: str, at: Position, news: News) -> None:
        """Tell one event of a queue, and know that it was told."""
        self.positions[queue] = at
        told = news.told_to(self.caller)
        if told and (self.wanted is None or told.event in self.wanted):
            self._rebase()
            self._tell(told.named(show_bearings(self.base, self.positions.items())))

    def tell_all(self, queue: str, story: Sequence[tuple[Position, News]], end: Position) -> None:
        """Tell of a queue what was not told yet, up to its end, or until enough waits for the reader."""
        since = self.positions[queue]
        for at, news in story:
            if at > since:
                if not self.takes():
                    return
                self.tell(queue, at, news)
        self.positions[queue] = max(since, end)

    def tell_reset(self, queue: str, at: Position) -> None:
        """Tell that something may have happened in a queue that cannot be told any more."""
        self.positions[queue] = at
        self._rebase()
        id = show_bearings(self.base, self.positions.items())
        self._tell(Told("reset", {"queue": queue}, id))

    def _rebase(self) -> None:
        """Move the base up, at times, to where all of all queues was told."""
        now = time.monotonic()
        if now - self._based > BASE_EVERY:
            self._based = now
            self.base = max(self.base, self.everything.base_of(self))


class Teller:
    """Tells watchers of everything what happens in one queue; `run` it in a task beside the foresight."""

    def __init__(self, store: Store, foresight: Foresight) -> None:
        self._store, self._foresight = store, foresight
        self._audience: dict[EverythingWatch, None] = {}
        self._woken = asyncio.Event()
        foresight.listeners.append(self)

    def __len__(self) -> int:
        return len(self._audience)

    @property
    def heard_until(self) -> int:
        """The store's time up to which all of the queue was heard."""
        return self._foresight.heard_until

    def admit(self, watch: EverythingWatch) -> None:
        """Tell this watcher too: what comes after its position here, or at first how the queue is."""
        self._audience[watch] = None
        self.wake()

    def leave(self, watch: EverythingWatch) -> None:
        """Tell this watcher no more."""
        self._audience.pop(watch, None)

    def told_until(self, watch: EverythingWatch) -> int:
        """Give the store's time up to which a watcher was told all of this queue."""
        at = watch.positions.get(self._store.queue)
        if at is None:
            return 0
        return self.heard_until if at >= Position(self._foresight.recent.last) else at.entry[0] * 1000 - 1

    def hear(self, _entries: Sequence[Entry]) -> None:
        """Hear that something happened."""
        if self._audience:
            self.wake()

    def missed(self) -> None:
        """Hear that something was missed; whoever missed it is found by its position."""
        self.wake()

    def wake(self) -> None:
        """Look who is to be told something."""
        self._woken.set()

    async def run(self) -> None:
        """Tell until cancelled, whatever becomes of the store."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            await self._foresight.ready.wait()
            begun, pause = time.monotonic(), PAUSE
            try:
                await self._tell_new()
                if await self._tell_behind():
                    self.wake()
                    pause = 0.0
            except MaitredError as error:
                _log.info("watchers of everything have to wait", queue=self._store.queue, error=str(error))
                self.wake()
                await asyncio.sleep(TROUBLE)
            # What is read for watchers leaves the store half of the time for others.
            await asyncio.sleep(max(pause, time.monotonic() - begun))

    async def _tell_new(self) -> None:
        """Tell how the queue is to those who just came, and to those who missed something."""
        queue, recent = self._store.queue, self._foresight.recent
        strangers = [watch for watch in self._audience if self._is_lost(watch)]
        if not strangers:
            return
        last = Position(recent.last)
        news = QueueNews(queue, await self._store.status(), self._foresight.waits())
        for watch in strangers:
            if queue in watch.positions:
                watch.tell_reset(queue, last)
            watch.tell(queue, last, news)

    def _is_lost(self, watch: EverythingWatch) -> bool:
        at = watch.positions.get(self._store.queue)
        return at is None or not self._foresight.recent.knows(at.entry)

    async def _tell_behind(self) -> bool:
        """Tell some of what they have not heard to all who have read what they did; whether there is more."""
        queue, recent = self._store.queue, self._foresight.recent
        behind = [watch for watch in self._audience if self._is_behind(watch)]
        if not behind:
            return False
        happenings = recent.following(min(watch.positions[queue] for watch in behind).entry, AT_ONCE)
        picture, wanted = self._foresight.picture, _wanted_by(behind)
        if not happenings or picture is None:
            return False
        known = Known(queue, picture.survey.settings, self._foresight)
        await known.read(self._store, happenings, wanted)
        told, end = list(story(happenings, known)), Position(happenings[-1].id)
        for watch in behind:
            watch.tell_all(queue, told, end)
        return any(map(self._is_behind, self._audience))

    def _is_behind(self, watch: EverythingWatch) -> bool:
        at = watch.positions.get(self._store.queue)
        return bool(at and at < Position(self._foresight.recent.last) and watch.takes())


def _wanted_by(watches: Sequence[EverythingWatch]) -> Collection[str] | None:
    """Give the names of the events that any of them wants to hear; None: all."""
    found: set[str] = set()
    for watch in watches:
        if watch.wanted is None:
            return None
        found.update(watch.wanted)
    return found


def _base(times: Iterable[int]) -> int:
    return max(0, min(times, default=0) - MARGIN) // 1000


class Everything:
    """The watchers of everything at one server, and the tellers of its queues."""

    def __init__(self) -> None:
        self._tellers: dict[str, Teller] = {}
        self._watches: dict[EverythingWatch, None] = {}

    def __len__(self) -> int:
        return len(self._watches)

    def open(
        self,
        caller: Caller,
        last: str | None = None,
        *,
        queues: Collection[str] | None = None,
        wanted: Collection[str] | None = None,
    ) -> EverythingWatch:
        """Begin to watch; `last` is the id of the last event that the watcher had.

        At first it is told how each queue is. One that comes back is told what it has not heard.
        """
        watch = EverythingWatch(self, caller, queues, wanted)
        watch.leave = partial(self._leave, watch)
        self._watches[watch] = None
        seen = {queue: teller for queue, teller in self._tellers.items() if watch.sees(queue)}
        # What happened before it came need not be told to a newcomer.
        watch.base = _base(teller.heard_until for teller in seen.values() if teller.heard_until)
        if last:
            bearings = Bearings.read(last)
            watch.base = bearings.base if bearings else watch.base
            watch.positions = {queue: (bearings or NOWHERE).of(queue) for queue in seen}
        for teller in seen.values():
            teller.admit(watch)
        return watch

    def joined(self, queue: str, teller: Teller) -> None:
        """Tell all who watch everything of a queue that was not known before, too."""
        self._tellers[queue] = teller
        for watch in self._watches:
            if watch.sees(queue):
                teller.admit(watch)

    def base_of(self, watch: EverythingWatch) -> int:
        """Give the time up to which a watcher was told everything, in milliseconds."""
        tellers = (teller for queue, teller in self._tellers.items() if watch.sees(queue))
        return _base(teller.told_until(watch) for teller in tellers)

    def wake(self, watch: EverythingWatch) -> None:
        """Tell more to a watcher that has read what it was told."""
        for queue in watch.positions:
            if teller := self._tellers.get(queue):
                teller.wake()

    def close(self) -> None:
        """End all watches; whoever watches may go on at another server."""
        for watch in list(self._watches):
            self._leave(watch)

    def _leave(self, watch: EverythingWatch) -> None:
        watch.close()
        self._watches.pop(watch, None)
        for teller in self._tellers.values():
            teller.leave(watch)
