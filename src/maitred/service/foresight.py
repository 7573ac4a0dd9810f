"""Foresight: when the waiting jobs of one queue will start, foreseen in the server that is asked.

It takes a picture of the queue once and follows what the store tells. From that it makes two outlooks. `near`
is made anew when somebody asks after a change and covers the head of the line. `deep` covers all of it; it is
planned in the background, a slice at a time, at most about once a second, and says by its `as_of` how old it
is. Any number of servers do this side by side, and nothing of it is stored.

A store that is lost, or entries that are missing, make it look again, with growing pauses; meanwhile nothing
is foreseen.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from maitred.core.estimate import Estimate
from maitred.core.events import Entry
from maitred.core.job import Phase, View
from maitred.core.settings import SECOND
from maitred.errors import MaitredError, StoreUnavailable
from maitred.service.experience import Experience
from maitred.service.lanes import edge_of, standing
from maitred.service.outlook import Outlook
from maitred.service.picture import Picture
from maitred.service.recent import RecentEvents, entry_id, show_entry
from maitred.store.port import Store, Survey

if TYPE_CHECKING:
    from maitred.service.metrics.tally import Tally

# For how long the store is asked to tell changes, and how often that is renewed, in seconds.
LISTEN = 600.0
RENEW = 60.0
# How many places are read at once.
PAGE = 2_000
# Changes within this time are read together, so that a draining queue does not keep the server busy.
PAUSE = 0.05
PATIENCE = 5.0
# How long a newcomer waits at most until its place is told, so that it can be promised something.
SOON = 0.1
# How far behind it may be before it is better to look again.
LAG = 5 * SECOND
FULL_PAGE = 256
HISTORY = 500

NEAR = 2_000
# How old the head's outlook may be: of a line that changed, and of one that did not.
NEAR_CHANGED = 0.05
NEAR_UNCHANGED = 0.25
# A slice of the deep outlook, how often it is made at most, and which part of the time that may take.
SLICE = 200
DEEP_EVERY = 1.0
DEEP_UNCHANGED = 5.0
DEEP_SHARE = 0.1

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0

_log = structlog.get_logger()


class Listener(Protocol):
    """Who wants to know what happened."""

    def hear(self, entries: Sequence[Entry]) -> None:
        """Hear what was just applied to the picture."""

    def missed(self) -> None:
        """Hear that something happened that was not told, or that it is not known any more."""


class Foresight:
    """The estimates of one queue; `run` it in a task, and cancel that to stop it.

    A `tally` counts all that is applied to the picture.
    """

    def __init__(
        self, store: Store, *, clock: Callable[[], float] = time.monotonic, tally: "Tally | None" = None
    ) -> None:
        self.experience = Experience(tally)
        self._tally = tally
        self.picture: Picture | None = None
        self.ready = asyncio.Event()
        self.recent = RecentEvents()
        # The store's time up to which all that happened was heard.
        self.heard_until = 0
        self.listeners: list[Listener] = []
        self._store = store
        self._clock = clock
        self._heard = (0, 0.0)
        self._renewed = 0.0
        self._near: Outlook | None = None
        self._near_made = 0.0
        self._deep: Outlook | None = None
        self._coming: Outlook | None = None
        self._changed = asyncio.Event()
        self._wanted = asyncio.Event()
        self._told = asyncio.Event()
        self._known_history = False

    # ---------------------------------------------------------------- asking

    @property
    def now(self) -> int:
        """The store's time, as far as it can be known without asking."""
        told, at = self._heard
        return told + max(0, round((self._clock() - at) * SECOND))

    async def hear_of(self, views: Iterable[View]) -> None:
        """Wait, but not for long, until the places of these jobs were told, with all that came before them.

        What happened just before a newcomer may have taken the slot that it would be promised.
        """
        missing = [view for view in views if self._untold(view, standing(view))]
        if not missing:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SOON):
                while missing:
                    self._wanted.set()
                    await self._told.wait()
                    missing = [view for view in missing if self._untold(view, standing(view))]

    async def hear_up_to(self, number: int) -> None:
        """Wait, but not for long, until the entry with this number was heard."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while self.recent.number < number:
                    self._wanted.set()
                    await self._told.wait()

    def hurry(self) -> None:
        """Let nothing gather that is told next: somebody waits for it."""
        self._wanted.set()

    def estimate(self, view: View) -> Estimate | None:
        """Tell when a waiting job will start; None if it does not wait, or nothing is foreseen yet."""
        picture = self.picture
        if picture is None or view.job.phase is not Phase.WAITING:
            return None
        place = standing(view)
        estimate = self.foresee(*place, max(picture.now, view.now))
        return estimate._replace(at_latest=None) if estimate and self._untold(view, place) else estimate

    def foresee(self, lane: str, order: bytes, now: int) -> Estimate | None:
        """Tell when a place will be taken; None if nothing is foreseen for it yet."""
        picture = self.picture
        if picture is None:
            return None
        estimate = self._fresh(picture, lane, order, now).estimate(lane, order, now)
        if estimate is None and self._deep is not None:
            estimate = self._deep.estimate(lane, order, now)
        if estimate is not None:
            self.experience.quoted((lane, order), estimate)
        return estimate

    @property
    def current(self) -> bool:
        """Tell whether estimates of the head hold all that was heard, as they do soon after a change."""
        near = self._near
        return self.picture is not None and (near is None or not near.stale or self._may_refresh())

    def position(self, lane: str, order: bytes) -> int | None:
        """Tell the position of a place; None if it is not in line, as far as is known."""
        if self.picture is None or not self.picture.lanes.has(lane, order):
            return None
        return 1 + self.picture.lanes.before(lane, order, edge_of(max(self.now, self.picture.now)))

    def waits(self) -> dict[str, Any] | None:
        """Give the statistics of recent waits."""
        return self.experience.waits()

    def _untold(self, view: View, place: tuple[str, bytes]) -> bool:
        """Tell whether the place of a job is newer than all that was heard."""
        picture = self.picture
        if picture is None or view.job.phase is not Phase.WAITING or view.now < picture.now:
            return False
        return not picture.lanes.has(*place)

    def _fresh(self, picture: Picture, lane: str, order: bytes, now: int) -> Outlook:
        """Give the outlook of the head, made anew if it is no longer right.

        To those who stood in line when it was made it may be a little old; its promises hold.
        """
        near = self._near
        if near is not None and picture.settled:
            outdated = near.stale and (self._may_refresh() or not near.has(lane, order))
            near = None if outdated or now - near.as_of > NEAR_UNCHANGED * SECOND else near
        if near is None:
            near = self._near = self._outlook(picture, now, NEAR)
            self._near_made = time.monotonic()
        return near

    def _may_refresh(self) -> bool:
        return time.monotonic() - self._near_made > NEAR_CHANGED

    def _outlook(self, picture: Picture, now: int, most: int | None) -> Outlook:
        experience = self.experience
        occupancy = picture.occupancy(now)
        return Outlook(picture.lanes, occupancy, experience.durations, experience.coverage, most)

    # ---------------------------------------------------------------- following

    async def run(self) -> None:
        """Look and follow until cancelled, whatever becomes of the store."""
        pause, lost = FIRST_PAUSE, False
        planning = asyncio.create_task(self._plan())
        try:
            while True:
                try:
                    if await self._look():
                        pause, lost = FIRST_PAUSE, False
                        await self._follow()
                        continue
                except Exception as error:  # noqa: BLE001 - whatever it is, it must not be the end of estimates
                    # That the store is away is said by those who need it for more than this.
                    if not lost and not isinstance(error, StoreUnavailable):
                        bug = None if isinstance(error, MaitredError) else error
                        about = {"queue": self._store.queue, "error": str(error)}
                        _log.warning("starts are not foreseen", **about, exc_info=bug)
                    lost = True
                self._forget()
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        finally:
            planning.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await planning

    async def _look(self) -> bool:
        """Take a new picture; tell whether that was possible, with all that happened meanwhile."""
        survey = await self._store.survey(LISTEN)
        await self._recall(survey)
        picture = Picture(survey, self.experience)
        if self._tally:
            self._tally.look(survey)
        # The store keeps what it tells for a while only, and a long line takes longer to read.
        meanwhile: list[Entry] = []
        for lane in survey.lanes:
            orders = picture.lanes[lane].orders
            while page := await self._store.places(lane, orders[-1] if orders else b"", PAGE):
                orders += page
                meanwhile += await self._store.news(meanwhile[-1].id if meanwhile else survey.last_id, 0)
        # The lanes are newer than the floor; both are right once all up to a second look is applied.
        picture.look(await self._store.survey(LISTEN))
        self._renewed = time.monotonic()
        complete = self._apply(picture, meanwhile)
        while complete and not picture.settled:
            complete = self._apply(picture, await self._store.news(show_entry(picture.last), PATIENCE))
        if not complete:
            return False
        self.experience.forget_quotes()
        self._heard = (picture.now, self._clock())
        self.heard_until = survey.now
        self.picture, self._near, self._deep = picture, None, None
        self._tell()
        self.ready.set()
        self._changed.set()
        for listener in self.listeners:
            listener.missed()
        return True

    async def _recall(self, survey: Survey) -> None:
        """Read what happened before and is not known yet, as far as the store keeps it."""
        if not self._known_history:
            self.experience.read_history((await self._store.ended(0, HISTORY)).views)
            self._known_history = True
        recent, last = self.recent, entry_id(survey.last_id)
        if recent.last > last and recent.number != survey.last_number:
            recent.begin(None)
        while recent.last < last:
            entries = await self._store.news(show_entry(recent.last), PATIENCE)
            known = [entry for entry in entries if entry_id(entry.id) <= last]
            if not known:
                # It is kept no longer, if so much has happened since the survey.
                break
            for entry in known:
                recent.add(entry)
        if recent.number != survey.last_number:
            recent.begin(last, survey.last_number)

    async def _follow(self) -> None:
        """Keep the picture by what is told, until something is missing."""
        picture = self.picture
        while picture is not None and picture is self.picture:
            began = self.now
            entries = await self._store.news(show_entry(picture.last), PATIENCE)
            if not self._apply(picture, entries):
                return
            if len(entries) < FULL_PAGE:
                self.heard_until = max(self.heard_until, began)
            if picture.changed_house or time.monotonic() - self._renewed > RENEW:
                picture.changed_house = False
                survey = await self._store.survey(LISTEN)
                self._renewed = time.monotonic()
                self._heard = (survey.now, self._clock())
                picture.look(survey)
                self._stale(broken=True)
            full = len(entries) >= FULL_PAGE
            if full and self.now - entries[-1].now > LAG:
                return
            if entries:
                await self._rest(0 if full or not picture.settled else PAUSE)

    async def _rest(self, longest: float) -> None:
        """Let changes gather, unless somebody wants to hear at once."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(longest):
                await self._wanted.wait()
        self._wanted.clear()

    def _apply(self, picture: Picture, entries: Sequence[Entry]) -> bool:
        """Apply entries; tell whether none is missing."""
        known = picture is self.picture
        for entry in entries:
            if entry_id(entry.id) <= picture.last:
                continue
            if entry.number != picture.number + 1:
                return False
            self.recent.add(entry)
            if self._tally:
                self._tally.count(entry, picture.survey.settings)
            if picture.follow(entry, self._added if known else _nobody) and known:
                self._stale(broken=picture.surprised)
        if entries and known:
            if entries[-1].now >= self.now:
                self._heard = (entries[-1].now, self._clock())
            self._changed.set()
            self._tell()
            for listener in self.listeners:
                listener.hear(entries)
        return True

    def _tell(self) -> None:
        """Wake all who wait for something to be heard."""
        self._told.set()
        self._told = asyncio.Event()

    def _added(self, lane: str, order: bytes, now: int) -> None:
        for outlook in (self._near, self._deep, self._coming):
            if outlook is not None:
                outlook.add(lane, order, now)

    def _stale(self, *, broken: bool) -> None:
        for outlook in (self._near, self._deep, self._coming):
            if outlook is not None:
                outlook.stale = True
                outlook.broken |= broken

    def _forget(self) -> None:
        """Foresee nothing until the store was looked at again."""
        self.picture = self._near = self._deep = None
        self.ready.clear()
        self._tell()

    # ---------------------------------------------------------------- the deep outlook

    async def _plan(self) -> None:
        """Keep an outlook of the whole line, where that is longer than its head."""
        while True:
            picture = self.picture
            short = picture is None or len(picture.lanes) <= NEAR
            if picture is None or short or not self._old(self._deep):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(None if short else DEEP_UNCHANGED):
                        await self._changed.wait()
                self._changed.clear()
                continue
            begun = time.monotonic()
            await self._plan_deep(picture)
            await asyncio.sleep(max(DEEP_EVERY, (time.monotonic() - begun) / DEEP_SHARE))

    def _old(self, deep: Outlook | None) -> bool:
        return deep is None or deep.stale or self.now - deep.as_of > DEEP_UNCHANGED * SECOND

    async def _plan_deep(self, picture: Picture) -> None:
        """Plan the whole line, a slice at a time; whoever joins meanwhile is heard of."""
        while not picture.settled:
            await self._told.wait()
            if picture is not self.picture:
                return
        deep = self._coming = self._outlook(picture, self.now, None)
        while not deep.done:
            begun = time.monotonic()
            deep.plan(SLICE)
            # Whoever is answered meanwhile takes several turns of the loop, and must not wait in each.
            await asyncio.sleep(time.monotonic() - begun)
        self._coming = None
        if picture is self.picture:
            self._deep = deep


def _nobody(_lane: str, _order: bytes, _now: int) -> None:
    """Nothing is foreseen from a picture that is not finished."""
