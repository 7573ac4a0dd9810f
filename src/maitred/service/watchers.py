"""All watchers of one queue: woken by what the foresight hears, told in order, and nobody polls for them.

Jobs that changed are read together, a few calls for any number of watchers. Places and estimates come from
the foresight and cost the store nothing; only whose place is whose the events do not tell, since a place is
the submitter's. So when places join a lane, the waiting jobs watched there are read again, at most a thousand
a second. Jobs that are given up when nobody watches them are attended, many in one call.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

import structlog

from maitred.core.events import Added, Entry
from maitred.core.job import Phase, View
from maitred.core.output import Chunk
from maitred.core.reason import waiting_for
from maitred.core.settings import SECOND, Settings
from maitred.errors import MaitredError, StoreUnavailable, UnknownJob
from maitred.service.foresight import Foresight
from maitred.service.output import read_on
from maitred.service.recent import EntryId, entry_id, of_job
from maitred.service.watch import Heard, Mark, Place, Watch
from maitred.store.port import Store

# How often a watcher is told of its place, at most, and how often it is looked at though nothing happened.
PLACE_EVERY = 0.25
LOOK_EVERY = 1.0
READ_AT_ONCE = 128
READS_A_SECOND = 1_000
LEAST_ATTENDING = 0.05
# After so many watchers others have their turn.
TURN = 50
PATIENCE = 5.0

_log = structlog.get_logger()


class Watchers:
    """Who watches jobs of one queue; `run` it in a task beside the foresight."""

    def __init__(self, store: Store, foresight: Foresight) -> None:
        self._store = store
        self._foresight = foresight
        self._by_record: dict[int, list[Watch]] = {}
        self._touched: set[Watch] = set()
        self._doubted: set[str] = set()
        self._missed = False
        self._moved = False
        self._woken = asyncio.Event()
        self._read_next = 0.0
        self._places_next = 0.0
        self._attend_next = 0.0
        foresight.listeners.append(self)

    def __len__(self) -> int:
        return sum(map(len, self._by_record.values()))

    # ---------------------------------------------------------------- coming and going

    async def open(self, id: str, version: int | None = None, last: str | None = None) -> Watch | None:
        """Begin to watch a job; `last` is the id of the last event that the watcher had.

        None if that was the end. Raises `UnknownJob`, or `StoreUnavailable` while nothing can be heard.
        """
        mark = Mark.read(last) if last else None
        if mark and mark.at_end:
            return None
        await self._until_ready()
        picture = self._foresight.picture
        if picture is None:
            raise StoreUnavailable
        at = max(picture.last, self._foresight.recent.since or picture.last)
        [view] = await self._store.read([id], version or (mark.version if mark else None))
        if view is None:
            raise UnknownJob(self._store.queue, id)
        watch = Watch(view, picture.survey.settings, at)
        if mark:
            watch.digest, watch.spoken = mark.digest, mark.spoken
        chunks = (await self._read_output([watch]))[watch] if view.job.stage else []
        recent = self._foresight.recent
        missing = recent.after(mark.entry, view.job.record) if mark else None
        if mark and missing is not None:
            watch.heard = [Heard(*each) for each in missing]
            watch.at = max(mark.entry, at)
            watch.tell_heard(len(missing), view, picture.survey.settings, chunks)
            if not watch.closed:
                # The connection may have broken between two events of one entry.
                watch.tell_state(view, picture.survey.settings, watch.at)
        else:
            if last:
                watch.tell_reset()
            self._tell_present(watch, view, chunks, watch.at)
            watch.heard = [Heard(*each) for each in recent.after(at, view.job.record) or []]
        if not watch.closed:
            # From the reading of what happened lately up to here nobody else had a turn.
            self._by_record.setdefault(watch.record, []).append(watch)
            watch.leave = partial(self.leave, watch)
            watch.opened()
            self._touch(watch)
            self._tell_places([watch])
            if watch.keeps:
                self._attend_next = 0.0
        return watch

    def leave(self, watch: Watch) -> None:
        """Watch no more."""
        watch.close()
        self._touched.discard(watch)
        watches = self._by_record.get(watch.record, [])
        if watch in watches:
            watches.remove(watch)
        if not watches:
            self._by_record.pop(watch.record, None)

    def close(self) -> None:
        """End all watches; whoever watches may come back, to this server or to another."""
        for watch in self._all():
            self.leave(watch)

    async def _until_ready(self) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._foresight.ready.wait()
        except TimeoutError:
            raise StoreUnavailable from None

    # ---------------------------------------------------------------- hearing

    def hear(self, entries: Sequence[Entry]) -> None:
        """Hear what happened; only what concerns a watched job is kept."""
        if not self._by_record:
            return
        for entry in entries:
            for event in entry.events:
                if isinstance(event, Added):
                    self._doubted.add(event.lane)
                elif (told := of_job(event)) and told.record in self._by_record:
                    self._hear(Heard(entry_id(entry.id), entry.now, told))
        self._moved = True
        self._woken.set()

    def _hear(self, heard: Heard) -> None:
        for watch in self._by_record[heard.event.record]:
            # One that comes from a server which is ahead of this one knows what this one hears only now.
            if heard.entry > watch.at:
                watch.heard.append(heard)
                self._touch(watch)

    def missed(self) -> None:
        """Hear that something was missed."""
        self._missed = True
        self._woken.set()

    def _touch(self, watch: Watch) -> None:
        self._touched.add(watch)
        self._woken.set()

    # ---------------------------------------------------------------- telling

    async def run(self) -> None:
        """Tell watchers what they should hear until cancelled."""
        await self._foresight.ready.wait()
        while True:
            await self._wake()
            try:
                await self._tell_states()
                await self._settle_doubts()
                await self._attend_all()
            except MaitredError as error:
                # The foresight looks again when the store is back, and everybody is told anew then.
                _log.info("watchers have to wait", queue=self._store.queue, error=str(error))
                self._missed = True
                await asyncio.sleep(LOOK_EVERY)
                continue
            now = time.monotonic()
            if now >= self._places_next:
                self._moved = False
                self._places_next = now + PLACE_EVERY
                await self._look_at_places()

    async def _wake(self) -> None:
        """Wait until something happened, or a watcher's place should be looked at; for nobody, no longer."""
        if not (self._touched or self._missed):
            now = time.monotonic()
            pause = min(self._attend_next - now, self._places_next - now if self._moved else LOOK_EVERY)
            self._woken.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.001, pause) if self._by_record else None):
                    await self._woken.wait()
        self._woken.clear()

    async def _tell_states(self) -> None:
        """Tell what happened to jobs; those whose state is not in the event are read together."""
        if self._missed:
            await self._start_anew()
        touched, self._touched = self._touched, set()
        # What is heard while they are read may be newer than what was read, and is told in the next round.
        heard = {watch: len(watch.heard) for watch in touched}
        try:
            views = await self._read([watch for watch in touched if watch.needs_view()])
            speaking = [watch for watch in touched if watch.needs_output(views.get(watch))]
            outputs = await self._read_output(speaking)
        except MaitredError:
            self._touched |= touched
            raise
        settings = self._settings()
        for watch in touched:
            watch.tell_heard(heard[watch], views.get(watch), settings, outputs.get(watch, ()))
            self._settle(watch)

    async def _start_anew(self) -> None:
        """Tell everybody the present, since something before it is not known."""
        watches, at = self._all(), self._at()
        self._missed = False
        for watch in watches:
            watch.heard.clear()
        views = await self._read(watches)
        outputs = await self._read_output(watches)
        for watch in watches:
            watch.tell_reset()
            view = views.get(watch)
            if view is None:
                watch.tell_deleted(at)
            else:
                self._tell_present(watch, view, outputs[watch], at)
            self._settle(watch)

    def _tell_present(self, watch: Watch, view: View, chunks: Sequence[Chunk], at: EntryId) -> None:
        """Tell the state and what the job said; of one that has ended, the end comes last."""
        ended = view.job.phase is Phase.ENDED
        if not ended:
            watch.tell_state(view, self._settings(), at)
        watch.tell_output(chunks, at)
        if ended:
            watch.tell_state(view, self._settings(), at)

    async def _settle_doubts(self) -> None:
        """Read jobs again whose place may be another one by now."""
        now = time.monotonic()
        if not self._doubted or now < self._read_next:
            return
        doubted, self._doubted = self._doubted, set()
        watches = [w for w in self._all() if w.waits and w.view.nonce is not None and _lane(w) in doubted]
        self._read_next = now + max(PLACE_EVERY, len(watches) / READS_A_SECOND)
        for watch, view in (await self._read(watches)).items():
            # Of an end the watcher hears, with what was said before it.
            if view and view.job.phase is not Phase.ENDED and not watch.heard:
                watch.tell_state(view, self._settings(), watch.at)
                self._settle(watch)

    async def _look_at_places(self) -> None:
        watches = [watch for watch in self._all() if watch.waits]
        lost = []
        for first in range(0, len(watches), TURN):
            lost += self._tell_places(watches[first : first + TURN])
            await asyncio.sleep(0)
        if lost:
            # Its place went to another job, or moved to another lane.
            self._doubted |= {_lane(watch) for watch in lost}

    def _tell_places(self, watches: Iterable[Watch]) -> list[Watch]:
        """Tell the places that moved; give those that could not be found."""
        foresight, picture, lost = self._foresight, self._foresight.picture, []
        if picture is None:
            return []
        now, survey, used = max(foresight.now, picture.now), picture.survey, picture.used()
        for watch in watches:
            if not watch.waits or watch.heard:
                continue
            lane, order = watch.standing()
            position = foresight.position(lane, order)
            if position is None:
                if watch.place is not None:
                    lost.append(watch)
                    continue
                position = watch.view.position
            view = replace(
                watch.view,
                position=position,
                now=now,
                paused=survey.paused,
                serving=int(picture.serves(watch.view.job.need)),
                limits=survey.limits,
                used=used,
            )
            reason = waiting_for(view, survey.settings)
            estimate = foresight.foresee(lane, order, now)
            place = Place(position, reason and reason.code, estimate)
            if place.matters_after(watch.place):
                watch.tell_place(place, view)
        return lost

    async def _attend_all(self) -> None:
        """Tell the store of watched jobs that are given up otherwise, each three times in that time."""
        now = time.monotonic()
        if now < self._attend_next:
            return
        watches = [watch for watch in self._all() if watch.keeps]
        await self._attend([watch for watch in watches if now >= _attend_at(watch)])
        self._attend_next = min([now + LOOK_EVERY, *map(_attend_at, watches)])

    async def _attend(self, watches: Sequence[Watch]) -> None:
        asking = [watch for watch in watches if watch.keeps]
        ids = list(dict.fromkeys(watch.view.job.id for watch in asking))
        for first in range(0, len(ids), READ_AT_ONCE):
            await self._store.attend(ids[first : first + READ_AT_ONCE])
        for watch in asking:
            watch.attended = time.monotonic()
            self._attend_next = min(self._attend_next, _attend_at(watch))

    # ---------------------------------------------------------------- parts of the above

    async def _read(self, watches: Sequence[Watch]) -> dict[Watch, View | None]:
        """Read the jobs of watches, each in the version that is followed, and once for all who watch it."""
        records = list(dict.fromkeys(watch.record for watch in watches))
        views: dict[int, View] = {}
        for first in range(0, len(records), READ_AT_ONCE):
            views |= (await self._store.records(records[first : first + READ_AT_ONCE])).views
        return {watch: views.get(watch.record) for watch in watches}

    async def _read_output(self, watches: Sequence[Watch]) -> dict[Watch, list[Chunk]]:
        """Read what jobs said after what was told of it, once for all who watch the same one.

        Whoever has missed something that is no longer kept is told so.
        """
        found: dict[Watch, list[Chunk]] = {}
        by_place: dict[tuple[int, int], list[Watch]] = {}
        for watch in watches:
            by_place.setdefault((watch.record, watch.spoken), []).append(watch)
        for (_, spoken), group in by_place.items():
            job = group[0].view.job
            chunks, gap = await read_on(self._store, job.id, job.version, spoken)
            for watch in group:
                found[watch] = chunks
                if gap and spoken:
                    watch.tell_reset()
                    if watch.view.job.phase is not Phase.ENDED:
                        watch.tell_state(watch.view, self._settings(), watch.at)
        return found

    def _settle(self, watch: Watch) -> None:
        if watch.closed:
            self.leave(watch)

    def _all(self) -> list[Watch]:
        return [watch for watches in self._by_record.values() for watch in watches]

    def _settings(self) -> Settings:
        picture = self._foresight.picture
        if picture is None:
            raise StoreUnavailable
        return picture.survey.settings

    def _at(self) -> EntryId:
        picture = self._foresight.picture
        return picture.last if picture else (0, 0)


def _attend_at(watch: Watch) -> float:
    """Give when the store should hear again that somebody watches this job."""
    return watch.attended + max(LEAST_ATTENDING, watch.view.job.abandon / 3 / SECOND)


def _lane(watch: Watch) -> str:
    return watch.standing()[0]
