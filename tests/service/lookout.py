"""A desk that foresees, on a clock that the tests set: a small language for promises."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from maitred.core.job import Finish, Lower, Start, Stop
from maitred.core.settings import SECOND
from maitred.service.desk import Desk
from maitred.service.foresight import Foresight
from maitred.service.foresights import Foresights
from maitred.service.recent import entry_id
from maitred.store.port import Store, Stores
from tests.conftest import Clock
from tests.http.guest import body
from tests.waiting import eventually

NEED = "handler:grade"


class Quote(NamedTuple):
    """An estimate in seconds after the start of the test; None where nothing is said."""

    expected: float | None
    low: float | None
    high: float | None
    at_latest: float | None


class Lookout:
    """A server's desk with foresights, and a worker that does as it is told."""

    def __init__(self, foresights: Foresights, stores: Stores, store: Store, clock: Clock) -> None:
        ticks = iter(range(10_000_000))
        self.desk = Desk(stores, foresights=foresights, clock=lambda: float(next(ticks)))
        self.foresights, self.store, self.clock, self.queue = foresights, store, clock, store.queue
        self.held: dict[str, Start] = {}

    @property
    def foresight(self) -> Foresight:
        foresight = self.foresights.of(self.queue)
        assert foresight is not None
        return foresight

    async def heard(self) -> None:
        """Wait until all that happened so far was heard, and is in what is foreseen from now on."""
        survey = await self.store.survey(600)
        last = entry_id(survey.last_id)

        async def caught_up() -> bool:
            picture = self.foresight.picture
            heard = picture is not None and picture.settled and picture.last >= last
            return heard and self.foresight.current and not (picture and picture.changed_house)

        await eventually(caught_up, 20)

    async def submit(self, key: str, **more: Any) -> str:
        """Submit a job, by a submitter of its own unless one is named; give its id."""
        id: str = (await self.put(key, **more))["id"]
        return id

    async def put(self, key: str, **more: Any) -> dict[str, Any]:
        """Submit a job; give the document that the caller is answered with."""
        who = more.pop("who", f"user:{key}")
        return await self.desk.put(self.queue, body(key, who, **more))

    async def quote(self, id: str) -> Quote | None:
        """Ask for a job's estimate."""
        return quote_of(await self.desk.read(self.queue, id))

    async def quotes(self, ids: Sequence[str]) -> list[Quote]:
        """Ask for the estimates of jobs that wait."""
        found = [await self.quote(id) for id in ids]
        assert None not in found
        return [quote for quote in found if quote]

    async def works(self, slots: int, serves: Sequence[str] = (NEED,), worker: str = "w") -> None:
        """Let a worker in, and let it start what there is."""
        self._note((await self.store.join(worker, slots, serves)).starts)

    async def ends(self, *ids: str, code: str = "") -> None:
        """End jobs that run; the worker starts what is next."""
        done = [Finish(self.held.pop(id).lease, code) for id in ids]
        self._note((await self.store.finish("w", done)).starts)

    async def starts(self) -> None:
        """Let the worker see what there is for it; what it is told to stop, it stops at once."""
        await self.store.tick()
        while messages := await self.store.park("w", 0.001):
            self._note([message for message in messages if isinstance(message, Start)])
            for lower in [message for message in messages if isinstance(message, Lower)]:
                for id, start in self.held.items():
                    if start.lease == lower.lease:
                        self.held[id] = start._replace(duration=lower.duration)
            stops = {message.lease for message in messages if isinstance(message, Stop)}
            stopped = [id for id, start in self.held.items() if start.lease in stops]
            if stopped:
                await self.ends(*stopped, code="cut")

    def _note(self, starts: Sequence[Start]) -> None:
        self.held.update({start.id: start for start in starts})


def quote_of(document: dict[str, Any]) -> Quote | None:
    """Read the estimate of a document."""
    told = document["estimate"]
    return told and Quote(*(_seconds(told[name]) for name in Quote._fields))


def _seconds(time: str | None) -> float | None:
    return None if time is None else round(datetime.fromisoformat(time).timestamp() - 1_000, 6)


@contextlib.asynccontextmanager
async def looking_out(stores: Stores, queue: str, clock: Clock) -> AsyncIterator[Lookout]:
    """Foresee the starts of a queue as long as the block lasts."""
    foresights = Foresights(stores, clock=lambda: clock.now / SECOND)

    async def known() -> Foresight | None:
        return foresights.of(queue)

    task = asyncio.create_task(foresights.run())
    try:
        foresight = await eventually(known, 20)
        assert foresight
        await asyncio.wait_for(foresight.ready.wait(), 20)
        yield Lookout(foresights, stores, stores.queue(queue), clock)
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
