"""The list of all jobs: what runs, then what waits in line order, then what has ended, last first.

A job is listed once, as its newest version. A filter is applied while the list is read page by page, with a
bound on what one request reads: past it the answer has the items found so far and a cursor to go on from.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from maitred.core.job import Submitter, View
from maitred.core.settings import Settings
from maitred.service.cursor import Spot
from maitred.store.port import Store
from maitred.wire import decode_body

RUNNING, WAITING, ENDED = range(3)
SEARCH_STEP = 500
MOST_SEARCHED = 20_000


@dataclass(frozen=True, slots=True)
class Filter:
    """What a listed job must be; None and empty ask for nothing."""

    state: str | None = None
    key: str | None = None
    submitter: Submitter | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Tell whether every job fits."""
        return self == Filter()

    def fits(self, view: View, settings: Settings) -> bool:
        """Tell whether a job is wanted. Its configuration is only read if it must be."""
        job = view.job
        if self.state is not None and job.state(settings.stages) != self.state:
            return False
        if self.submitter is not None and job.submitter != self.submitter:
            return False
        if self.key is None and not self.metadata:
            return True
        config = decode_body(job.body)
        if self.key is not None and config["key"] != self.key:
            return False
        has = config.get("metadata", {})
        return all(has.get(name) == value for name, value in self.metadata.items())


class Hit(NamedTuple):
    """A job that fits, and its rank among what was read with it."""

    view: View
    rank: int


class Step(NamedTuple):
    """What one read found, and where to read on; None at the end."""

    hits: list[Hit]
    read: int
    after: Spot | None


class Found(NamedTuple):
    """A page of the list; `matched` is None where not all could be counted."""

    hits: list[Hit]
    following: Spot | None
    matched: int | None


class Listing:
    """The list of one queue's jobs through one filter."""

    def __init__(self, store: Store, settings: Settings, wanted: Filter) -> None:
        self._store = store
        self._settings = settings
        self._wanted = wanted

    async def page(self, spot: Spot, limit: int) -> Found:
        """Give the next `limit` jobs of the list without a filter, uncounted."""
        hits: list[Hit] = []
        after: Spot | None = spot
        while after and len(hits) < limit:
            step = await self._step(after, limit - len(hits))
            hits += step.hits
            after = step.after
        return Found(hits, after if await self._anything(after) else None, None)

    async def search(self, spot: Spot, limit: int) -> Found:
        """Give the next `limit` jobs that fit; from the beginning of the list, count all of them too."""
        counting = spot == Spot(RUNNING)
        hits: list[Hit] = []
        following: Spot | None = None
        after: Spot | None = spot
        matched = read = 0
        while after and read < MOST_SEARCHED and (counting or matched <= limit):
            step = await self._step(after, SEARCH_STEP)
            wanted = step.hits[: limit - len(hits)]
            hits += wanted
            if wanted and len(hits) == limit:
                following = await self._advance(after, wanted[-1].rank + 1)
            matched += len(step.hits)
            read += step.read
            after = step.after
        if len(hits) < limit:
            following = after
        elif after is None and matched == limit:
            following = None
        return Found(hits, following, matched if counting and after is None else None)

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
            case _:
                return await self._ended(spot, size)

    async def _running(self, spot: Spot, size: int) -> Step:
        running = await self._store.running()
        part = running[spot.offset : spot.offset + size]
        end = spot.offset + len(part)
        after = spot._replace(offset=end) if end < len(running) else Spot(WAITING, total=spot.total)
        return Step(await self._newest(part), len(part), after)

    async def _waiting(self, spot: Spot, size: int) -> Step:
        page = await self._store.line(spot.page or None, size)
        after = spot._replace(page=page.next) if page.next else Spot(ENDED, total=spot.total)
        hits = [
            Hit(view, index)
            for index, view in enumerate(page.views)
            if self._wanted.fits(view, self._settings)
        ]
        return Step(hits, len(page.views), after)

    async def _ended(self, spot: Spot, size: int) -> Step:
        page = await self._store.ended(spot.offset, size)
        end = spot.offset + len(page.views)
        after = spot._replace(offset=end) if page.views and end < page.total else None
        return Step(await self._newest(page.views), len(page.views), after)

    async def _newest(self, views: list[View]) -> list[Hit]:
        """Keep what fits and is its job's newest version; a waiting job is always its newest."""
        fitting = [(i, v) for i, v in enumerate(views) if self._wanted.fits(v, self._settings)]
        if not fitting:
            return []
        newest = await self._store.read([view.job.id for _, view in fitting])
        return [
            Hit(view, index)
            for (index, view), now in zip(fitting, newest, strict=True)
            if now is None or now.job.record == view.job.record
        ]

    async def _advance(self, spot: Spot, count: int) -> Spot | None:
        """Give the spot that is `count` jobs further, within what one read gave."""
        if spot.section != WAITING:
            return spot._replace(offset=spot.offset + count)
        page = await self._store.line(spot.page or None, count)
        return spot._replace(page=page.next) if page.next else Spot(ENDED, total=spot.total)
