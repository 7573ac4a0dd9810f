"""The list of all jobs: what runs, what waits in line order, what is held, then what has ended, last first.

A job is listed once, as its newest version. A filter is applied while the list is read page by page, with a
bound on what one request reads: past it the answer has the items found so far and a cursor to go on from.
What a filter can tell beforehand is not read at all: a state says in which sections its jobs are, a key
nearly says the id, and the store knows what a submitter has in line, and what is in a batch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from maitred.core.ids import job_id
from maitred.core.job import Submitter, View
from maitred.core.settings import Settings
from maitred.service.cursor import Spot, wrong_cursor
from maitred.store.port import Status, Store
from maitred.wire import decode_body

RUNNING, WAITING, HELD, ENDED, ROWS = range(5)
SEARCH_STEP = 500
MOST_SEARCHED = 10_000
MOST_OF_SUBMITTER = 5_000
READ_AT_ONCE = 128


@dataclass(frozen=True, slots=True)
class Filter:
    """What a listed job must be; None and empty ask for nothing. `owns` leaves out other submitters' jobs."""

    state: str | None = None
    key: str | None = None
    submitter: Submitter | None = None
    batch: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    owns: Callable[[Submitter], bool] | None = None

    @property
    def empty(self) -> bool:
        """Tell whether every job fits."""
        return self == Filter()

    def sections(self, settings: Settings) -> tuple[int, ...]:
        """Give the sections that a job that fits can be in; the rows of a batch are one of their own."""
        if self.batch is not None:
            return (ROWS,)
        if self.state in settings.stages:
            return RUNNING, WAITING
        one = {"pending": WAITING, "held": HELD, "completed": ENDED, "failed": ENDED}.get(self.state or "")
        return (RUNNING, WAITING, HELD, ENDED) if one is None else (one,)

    def fits(self, view: View, settings: Settings) -> bool:
        """Tell whether a job is wanted. Its configuration is only read if it must be."""
        job = view.job
        if self.state is not None and job.state(settings.stages) != self.state:
            return False
        if not self._is_of_those(job.submitter):
            return False
        if self.batch is not None and job.batch != self.batch:
            return False
        if self.key is None and not self.metadata:
            return True
        config = decode_body(job.body)
        if self.key is not None and config["key"] != self.key:
            return False
        has = config.get("metadata", {})
        return all(has.get(name) == value for name, value in self.metadata.items())

    def _is_of_those(self, submitter: Submitter) -> bool:
        if self.submitter is not None and submitter != self.submitter:
            return False
        return self.owns is None or self.owns(submitter)


class Hit(NamedTuple):
    """A job that fits, and its rank among what was read with it."""

    view: View
    rank: int


class Step(NamedTuple):
    """What one read found, and where to read on; None at the end. `counted` spots go on by their offset."""

    hits: list[Hit]
    read: int
    after: Spot | None
    counted: bool = True


class Found(NamedTuple):
    """A page of the list; `total` is None where not all could be counted."""

    views: list[View]
    following: Spot | None
    total: int | None


class Listing:
    """The list of one queue's jobs through one filter."""

    def __init__(self, store: Store, status: Status, wanted: Filter) -> None:
        self._store = store
        self._status = status
        self._settings = status.settings
        self._wanted = wanted
        self._sections = wanted.sections(status.settings)
        self._total = self._known_total()

    async def page(self, spot: Spot | None, limit: int) -> Found:
        """Give the next `limit` jobs from a spot on, None for the beginning.

        Raises `InvalidJob` for the spot of another list.
        """
        if spot is not None and spot.section not in self._sections:
            raise wrong_cursor()
        if self._wanted.batch is not None and not await self._find_batch():
            return Found([], None, 0)
        if spot is None and self._total == 0:
            return Found([], None, 0)
        if self._wanted.empty:
            return await self._all(spot or self._start, limit)
        if spot is None and (named := await self._named()):
            return Found([named], self._start._replace(shown=named.job.id), None)
        return await self._search(spot or self._start, limit)

    @property
    def _start(self) -> Spot:
        return Spot(self._sections[0])

    def _known_total(self) -> int | None:
        """Give how many jobs fit where the store's counters say so; they count every version."""
        wanted, counts = self._wanted, self._status.counts
        if wanted.empty:
            return self._status.jobs
        if wanted.state is None or wanted != Filter(state=wanted.state):
            return None
        once = wanted.state == "pending" or sum(counts.values()) == self._status.jobs
        return counts.get(wanted.state, 0) if once else None

    async def _find_batch(self) -> bool:
        """Tell whether there is such a batch; before its report its counters say how many jobs it has."""
        batch = await self._store.batch(self._wanted.batch or "")
        if batch is not None and not batch.reported and self._wanted == Filter(batch=batch.id):
            self._total = sum(batch.counts.values()) - batch.counts["deleted"]
        return batch is not None

    async def _named(self) -> View | None:
        """Find the job with the key that is asked for, and no response address, in a queue too large to read.

        Others may have the key with an address; they are found by reading on.
        """
        if self._wanted.key is None or self._wanted.batch is not None or self._status.jobs <= SEARCH_STEP:
            return None
        [view] = await self._store.read([job_id(self._wanted.key)])
        return view if view and self._wanted.fits(view, self._settings) else None

    async def _all(self, spot: Spot, limit: int) -> Found:
        """Give the next `limit` jobs of the list without a filter."""
        hits: list[Hit] = []
        after: Spot | None = spot
        while after and len(hits) < limit:
            step = await self._step(after, limit - len(hits))
            hits += step.hits
            after = step.after
        following = after if await self._anything(after) else None
        return Found([hit.view for hit in hits], following, self._total)

    async def _search(self, spot: Spot, limit: int) -> Found:
        """Give the next `limit` jobs that fit; from the beginning of the list, count all of them too."""
        at_start = spot == self._start
        counting = at_start and self._total is None
        hits: list[Hit] = []
        following: Spot | None = None
        after: Spot | None = spot
        matched = read = 0
        while after and read < MOST_SEARCHED and (counting or matched <= limit):
            step = await self._step(after, SEARCH_STEP)
            wanted = step.hits[: limit - len(hits)]
            hits += wanted
            if wanted and len(hits) == limit:
                following = await self._advance(after, wanted[-1].rank + 1, counted=step.counted)
            matched += len(step.hits)
            read += step.read
            after = None if at_start and matched == self._total else step.after
        if len(hits) < limit:
            following = after
        elif after is None and matched == limit:
            following = None
        total = matched if counting and after is None else self._total
        if total is None and spot.total >= 0:
            total = spot.total
        kept = -1 if total is None else total
        following = following and following._replace(total=kept, shown=spot.shown)
        return Found([hit.view for hit in hits], following, total)

    async def _anything(self, spot: Spot | None) -> bool:
        while spot:
            step = await self._step(spot, 1)
            if step.hits:
                return True
            spot = step.after
        return False

    async def _step(self, spot: Spot, size: int) -> Step:
        match spot.section:
            case 0:
                return await self._running(spot, size)
            case 1:
                return await self._waiting(spot, size)
            case 2:
                return await self._held(spot, size)
            case 3:
                return await self._ended(spot, size)
            case _:
                return await self._rows(spot, size)

    async def _running(self, spot: Spot, size: int) -> Step:
        running = await self._store.running()
        part = running[spot.offset : spot.offset + size]
        end = spot.offset + len(part)
        after = spot._replace(offset=end) if end < len(running) else self._next_section(spot)
        return Step(await self._newest(part, spot), len(part), after)

    async def _waiting(self, spot: Spot, size: int) -> Step:
        if self._wanted.submitter is not None and not spot.page:
            mine = await self._in_line(self._wanted.submitter)
            if mine is not None:
                return self._part_of(mine, spot, size)
        page = await self._store.line(spot.page or None, size)
        after = self._next_section(spot) if page.next is None else spot._replace(page=page.next)
        return Step(self._fitting(page.views, spot), len(page.views), after, counted=False)

    async def _in_line(self, submitter: Submitter) -> list[View] | None:
        """Give all that a submitter has in line, in line order; None if that is too much to read at once."""
        ids = (await self._store.submitter(submitter, MOST_OF_SUBMITTER)).jobs
        if len(ids) >= MOST_OF_SUBMITTER:
            return None
        views: list[View] = []
        for first in range(0, len(ids), READ_AT_ONCE):
            read = await self._store.read([id for id in ids[first : first + READ_AT_ONCE] if id])
            views += [view for view in read if view and view.position is not None]
        return sorted(views, key=lambda view: view.position or 0)

    def _part_of(self, views: list[View], spot: Spot, size: int) -> Step:
        part = views[spot.offset : spot.offset + size]
        end = spot.offset + len(part)
        after = spot._replace(offset=end) if end < len(views) else self._next_section(spot)
        return Step(self._fitting(part, spot), len(part), after)

    async def _held(self, spot: Spot, size: int) -> Step:
        page = await self._store.held(spot.offset, size)
        end = spot.offset + len(page.views)
        more = page.views and end < page.total
        after = spot._replace(offset=end) if more else self._next_section(spot)
        return Step(self._fitting(page.views, spot), len(page.views), after)

    async def _rows(self, spot: Spot, size: int) -> Step:
        """Read some of a batch; what was deleted has only its name there."""
        page = await self._store.batch_rows(self._wanted.batch or "", spot.offset, size)
        views: list[View | None] = []
        for first in range(0, len(page.rows), READ_AT_ONCE):
            part = page.rows[first : first + READ_AT_ONCE]
            views += await self._store.read([row.id for row in part])
        hits = [
            Hit(view, rank)
            for rank, view in enumerate(views)
            if view is not None and self._wanted.fits(view, self._settings)
        ]
        after = None if page.next is None else spot._replace(offset=page.next)
        return Step(hits, len(page.rows), after, counted=False)

    async def _ended(self, spot: Spot, size: int) -> Step:
        page = await self._store.ended(spot.offset, size)
        end = spot.offset + len(page.views)
        after = spot._replace(offset=end) if page.views and end < page.total else None
        return Step(await self._newest(page.views, spot), len(page.views), after)

    def _next_section(self, spot: Spot) -> Spot | None:
        later = [section for section in self._sections if section > spot.section]
        return Spot(later[0], total=spot.total, shown=spot.shown) if later else None

    def _fitting(self, views: list[View], spot: Spot) -> list[Hit]:
        return [
            Hit(view, index)
            for index, view in enumerate(views)
            if view.job.id != spot.shown and self._wanted.fits(view, self._settings)
        ]

    async def _newest(self, views: list[View], spot: Spot) -> list[Hit]:
        """Keep what fits and is its job's newest version; a waiting job is always its newest."""
        fitting = self._fitting(views, spot)
        if not fitting:
            return []
        newest = await self._store.read([hit.view.job.id for hit in fitting])
        return [
            hit
            for hit, now in zip(fitting, newest, strict=True)
            if now is None or now.job.record == hit.view.job.record
        ]

    async def _advance(self, spot: Spot, count: int, *, counted: bool) -> Spot | None:
        """Give the spot that is `count` jobs further, within what one read gave."""
        if counted:
            return spot._replace(offset=spot.offset + count)
        if spot.section == ROWS:
            rows = await self._store.batch_rows(self._wanted.batch or "", spot.offset, count)
            return None if rows.next is None else spot._replace(offset=rows.next)
        page = await self._store.line(spot.page or None, count)
        return spot._replace(page=page.next) if page.next else self._next_section(spot)
