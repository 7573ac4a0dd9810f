"""The desk: where callers ask. One method a verb: check what came, ask the store once, build the answer.

Everything that people reach over HTTP, the command line or from Python comes through here, so that a rule
holds for all of them. What can go wrong is raised as a type of `maitred.errors`; in a list of many, each
job's error stands in its place.
"""

import time
from collections.abc import Callable, Sequence

from maitred.core.job import Phase, Submitter, View
from maitred.core.settings import Settings
from maitred.errors import Fault, Forbidden, InvalidJob, MaitredError, StoreUnavailable, UnknownJob
from maitred.service.audit import Audit
from maitred.service.batch_desk import BatchDesk
from maitred.service.caller import HOUSE, Caller
from maitred.service.cursor import Spot, read_cursor, write_cursor, wrong_cursor
from maitred.service.document import Document, job_document
from maitred.service.door import Door
from maitred.service.everything import EverythingWatch
from maitred.service.foresight import Foresight
from maitred.service.foresights import DEAF, Foresights
from maitred.service.hold_desk import HoldDesk
from maitred.service.house_document import (
    line_of_submitter,
    queue_document,
    running_document,
    violation_document,
    worker_document,
)
from maitred.service.intake import Accepted, accept, accept_one, accept_shown
from maitred.service.key_desk import KeyDesk
from maitred.service.keyring import Keys
from maitred.service.listing import WAITING, Filter, Listing
from maitred.service.messages import delivery_document
from maitred.service.meter import Meter
from maitred.service.order import allowed_by, duration_of
from maitred.service.output_desk import OutputDesk
from maitred.service.parts import part_of
from maitred.service.sessions import COMEBACK, Sessions
from maitred.service.staff import Staff
from maitred.service.watch import Watch
from maitred.store.ledgered import LedgeredStore
from maitred.store.port import Store, Stores

SETTINGS_KEPT = 1.0
READ_AT_ONCE = 128


class Desk:
    """The use cases on the queues of one store.

    `UnknownQueue` is raised by every method that names a queue, `StoreUnavailable` by all. A queue's settings
    are remembered for a second. Holds, batches, sessions and what jobs say have desks of their own: `holds`,
    `batches`, `sessions` and `outputs`; `keys` are those of all queues, `door` knows callers by
    them, the `audit` log what they did; the `key_desk` makes and
    revokes them. Estimates and waits are told, jobs
    can be watched and sessions opened where there are `foresights`, as in a server; else they are null. The
    `clerks` of a server are told when there is work for them. A session's client that drops has `comeback`
    seconds to come back. Each key may make `rate` calls a second.
    """

    def __init__(
        self,
        stores: Stores,
        *,
        foresights: Foresights | None = None,
        clerks: Staff | None = None,
        clock: Callable[[], float] = time.monotonic,
        comeback: float = COMEBACK,
        rate: float | None = None,
    ) -> None:
        self.stores = stores
        self.foresights = foresights
        self.clerks = clerks
        self._clock = clock
        self._settings: dict[str, tuple[float, Settings]] = {}
        self.holds = HoldDesk(self)
        self.batches = BatchDesk(self)
        self.sessions = Sessions(self, comeback)
        self.outputs = OutputDesk(self)
        self.keys = Keys(stores.keyring)
        self.door = Door(self.keys, clock, meter=Meter(rate))
        self.audit = Audit(stores.keyring)
        self.key_desk = KeyDesk(self.keys, self.door)

    async def settings(self, queue: str) -> Settings:
        """Give a queue's settings, at most a second old."""
        kept = self._settings.get(queue)
        if kept and kept[0] > self._clock():
            return kept[1]
        self._settings.pop(queue, None)
        status = await self.store(queue).status()
        self._settings[queue] = (self._clock() + SETTINGS_KEPT, status.settings)
        return status.settings

    def store(self, queue: str) -> Store:
        """Give the store of one queue."""
        return self.stores.queue(queue)

    # ---------------------------------------------------------------- submitters

    async def put(self, queue: str, body: object, caller: Caller = HOUSE) -> Document:
        """Create or update a job; give its document and the `outcome`.

        Raises `InvalidJob` with all faults, `TooLarge`, `QueueFull`, `Forbidden`, or a `Conflict`:
        `OtherSubmitter`, `LongerDuration`, `Interactive`.
        """
        settings = await self.settings(queue)
        accepted, view = await accept_shown(self.store(queue), settings, body, caller)
        [document] = await self._shown(queue, [view], settings)
        answer = self._answer(queue, accepted, document)
        if isinstance(answer, MaitredError):
            raise answer
        return answer

    async def submit(self, queue: str, body: object) -> Accepted:
        """Create or update a job as `put` does, without reading it back."""
        return await accept_one(self.store(queue), await self.settings(queue), body)

    async def put_many(
        self, queue: str, bodies: Sequence[object], caller: Caller = HOUSE, *, only_new: bool = False
    ) -> list[Document | MaitredError]:
        """Create or update jobs in turn; give each one's document or error, in order.

        With `only_new` a key that its batch has is passed over.
        """
        answers = await self.accept(queue, bodies, caller, only_new=only_new)
        ids = [answer.id for answer in answers if isinstance(answer, Accepted)]
        documents: dict[str, Document | None] = dict(zip(ids, await self._documents(queue, ids), strict=True))
        return [
            self._answer(queue, answer, documents.get(answer.id)) if isinstance(answer, Accepted) else answer
            for answer in answers
        ]

    async def accept(
        self, queue: str, bodies: Sequence[object], caller: Caller = HOUSE, *, only_new: bool = False
    ) -> list[Accepted | MaitredError]:
        """Create or update jobs in turn, as `put_many` does, without reading them back."""
        settings = await self.settings(queue)
        return await accept(self.store(queue), settings, bodies, only_new=only_new, caller=caller)

    async def remove(self, queue: str, id: str) -> None:
        """Delete a job with all its versions; `UnknownJob` if there is none."""
        await self.store(queue).remove(id)

    async def cancel(self, queue: str, id: str, *, by: str, reason: str = "") -> Document:
        """End a job that has not ended; `UnknownJob`, or `AlreadyEnded`."""
        await self.store(queue).cancel(id, f"cancelled by {by}: {reason}" if reason else f"cancelled by {by}")
        return await self.read(queue, id)

    async def shorten(self, queue: str, id: str, length: float) -> Document:
        """Let a waiting or running job take only so many seconds; below what it has run, it stops.

        Raises `InvalidJob` at `seconds` if the queue allows no such duration, `UnknownJob`, `AlreadyEnded`,
        `LongerDuration`, or `Interactive`.
        """
        if fault := allowed_by(await self.settings(queue)).duration_fault(length):
            raise InvalidJob([Fault("seconds", fault)])
        await self.store(queue).shorten(id, duration_of(length))
        return await self.read(queue, id)

    # ---------------------------------------------------------------- the line

    async def release(self, queue: str, id: str, nonce: int | None = None) -> Document:
        """Move a job to the front; `UnknownJob`, `NotWaiting`, `NotMovable` or `OtherNonce`."""
        await self.store(queue).release(id, nonce)
        return await self.read(queue, id)

    async def delay(self, queue: str, id: str, nonce: int | None = None) -> Document:
        """Move a job behind all others of its band and priority; the same errors as `release`."""
        await self.store(queue).delay(id, nonce)
        return await self.read(queue, id)

    async def prioritise(self, queue: str, id: str, priority: int) -> Document:
        """Give a waiting job another priority; `UnknownJob` or `NotWaiting`."""
        await self.store(queue).prioritise(id, priority)
        return await self.read(queue, id)

    async def retry(self, queue: str, id: str) -> Document:
        """Let a failed job go on at the stage that failed.

        Raises `UnknownJob`, `NotFailed`, `Interactive` or `BatchReporting`.
        """
        await self.store(queue).retry(id)
        return await self.read(queue, id)

    async def line(self, queue: str, cursor: str | None = None, limit: int = 50) -> Document:
        """List the waiting jobs in line order."""
        settings = await self.settings(queue)
        spot = read_cursor(cursor) if cursor else Spot(WAITING)
        if spot.section != WAITING:
            raise wrong_cursor()
        page = await self.store(queue).line(spot.page or None, limit)
        last = page.views[-1].position if page.views else None
        more = page.next is not None and last is not None and last < page.total
        return {
            "items": await self._shown(queue, page.views, settings),
            "next": write_cursor(Spot(WAITING, page=page.next or b"")) if more else None,
            "total": page.total,
        }

    async def submitter(self, queue: str, submitter: Submitter) -> Document:
        """Show what one submitter has in line, and whether it is held."""
        status = await self.store(queue).status()
        return line_of_submitter(submitter, await self.store(queue).submitter(submitter), status)

    # ---------------------------------------------------------------- readers

    async def read(self, queue: str, id: str, version: int | None = None) -> Document:
        """Give the document of a job's newest version, or of the one asked for; or raise `UnknownJob`."""
        [document] = await self._documents(queue, [id], version)
        if document is None:
            raise UnknownJob(queue, id)
        return document

    async def deliveries(
        self, queue: str, id: str, version: int | None = None, cursor: str | None = None, limit: int = 50
    ) -> Document:
        """List the last tries to tell a job's submitter of it, oldest first; or `UnknownJob`."""
        tries = await self.store(queue).deliveries(id, version)
        if tries is None:
            raise UnknownJob(queue, id)
        part = part_of(tries, cursor, limit)
        return part.page([delivery_document(queue, each) for each in part.items])

    async def watch(
        self, queue: str, id: str, version: int | None = None, last: str | None = None
    ) -> Watch | None:
        """Watch a job's newest version, or the one asked for, to its end; `last` is the last event's id.

        None if that was the end. Raises `UnknownJob`; `StoreUnavailable` where nobody listens to the store.
        The caller leaves the watch in the end.
        """
        await self.settings(queue)
        watchers = None if self.foresights is None else self.foresights.watchers(queue)
        if watchers is None:
            raise StoreUnavailable(DEAF)
        return await watchers.open(id, version, last)

    async def watch_everything(
        self,
        caller: Caller = HOUSE,
        last: str | None = None,
        *,
        queues: Sequence[str] = (),
        events: Sequence[str] = (),
    ) -> EverythingWatch:
        """Watch all queues that a caller may use, or some of them, and all events, or some of them.

        `last` is the last event's id. Raises `Forbidden` for a queue that is not for the caller;
        `StoreUnavailable` where nobody listens to the store. The caller leaves the watch in the end.
        """
        for queue in queues:
            if not caller.may_use(queue):
                raise Forbidden(f"the key is not good for the queue {queue!r}")
            await self.settings(queue)
        if self.foresights is None:
            raise StoreUnavailable(DEAF)
        return await self.foresights.watch_everything(caller, last, queues or None, events or None)

    async def jobs(self, queue: str, wanted: Filter, cursor: str | None = None, limit: int = 50) -> Document:
        """List jobs: running, then waiting in line order, then held, then ended, last first.

        Those of a batch are listed in the order in which they came in.
        """
        store = self.store(queue)
        status = await store.status()
        _check_state(wanted.state, status.settings)
        listing = Listing(store, status, wanted)
        found = await listing.page(read_cursor(cursor) if cursor else None, limit)
        return {
            "items": await self._shown(queue, found.views, status.settings),
            "next": write_cursor(found.following) if found.following else None,
            "total": found.total,
        }

    async def running(
        self, queue: str, cursor: str | None = None, limit: int = 50, caller: Caller = HOUSE
    ) -> Document:
        """List the jobs that run, in the order of their starts."""
        settings = await self.settings(queue)
        part = part_of(await self.store(queue).running(), cursor, limit)
        return part.page(
            [
                running_document(view, settings)
                if caller.owns(view.job.submitter)
                else caller.seen(job_document(queue, view, settings))
                for view in part.items
            ]
        )

    async def workers(self, queue: str, cursor: str | None = None, limit: int = 50) -> Document:
        """List the workers of a queue."""
        status = await self.store(queue).status()
        part = part_of(status.workers, cursor, limit)
        return part.page([worker_document(worker, status.settings) for worker in part.items])

    # ---------------------------------------------------------------- operators

    async def queues(self, cursor: str | None = None, limit: int = 50, caller: Caller = HOUSE) -> Document:
        """List the queues by name that a caller may use."""
        names = [name for name in await self.stores.names() if caller.may_use(name)]
        part = part_of(names, cursor, limit)
        return part.page([caller.seen_queue(await self.queue(name)) for name in part.items])

    async def queue(self, queue: str) -> Document:
        """Show one queue."""
        status = await self.store(queue).status()
        foresight = self._foresight(queue)
        return queue_document(queue, status, foresight.waits() if foresight else None)

    async def pause(self, queue: str, *, by: str, reason: str = "") -> Document:
        """Let a queue start nothing more; it goes on to accept."""
        await self.store(queue).pause(by, reason)
        return await self.queue(queue)

    async def resume(self, queue: str) -> Document:
        """Let a queue start jobs again."""
        await self.store(queue).resume()
        return await self.queue(queue)

    async def check(self, queue: str, *, repair: bool = False) -> Document:
        """Look for broken rules in the store of a queue, in short steps, and repair what can be if asked."""
        found = await self.store(queue).check(repair=repair)
        return {"queue": queue, "violations": [violation_document(violation) for violation in found]}

    async def reconcile(self, queue: str) -> Document:
        """Rebuild the line of a queue from its ledger; where that is in the store itself, nothing is to do.

        Raises `StoreUnavailable` where the ledger is kept elsewhere and does not answer.
        """
        settings, store = await self.settings(queue), self.store(queue)
        if not settings.ledger:
            return {"queue": queue, "ledger": None, "changes": []}
        tally = await store.reconcile() if isinstance(store, LedgeredStore) else None
        if tally is None:
            raise StoreUnavailable(f"this server does not reach the ledger at {settings.ledger}")
        changes = [{"code": code, "text": text} for code, text in tally.sentences()]
        return {"queue": queue, "ledger": settings.ledger, "changes": changes}

    # ---------------------------------------------------------------- parts of the above

    async def _shown(
        self, queue: str, views: Sequence[View | None], settings: Settings
    ) -> list[Document | None]:
        """Give the documents of jobs, with what is foreseen of those that wait."""
        waiting = [view for view in views if view and view.job.phase is Phase.WAITING]
        foresight = self._foresight(queue) if waiting else None
        if foresight is None:
            return [job_document(queue, view, settings) if view else None for view in views]
        await foresight.hear_of(waiting)
        return [
            job_document(queue, view, settings, foresight.estimate(view)) if view else None for view in views
        ]

    def _foresight(self, queue: str) -> Foresight | None:
        return None if self.foresights is None else self.foresights.of(queue)

    async def _documents(
        self, queue: str, ids: Sequence[str], version: int | None = None
    ) -> list[Document | None]:
        if not ids:
            return []
        settings = await self.settings(queue)
        views: list[View | None] = []
        for first in range(0, len(ids), READ_AT_ONCE):
            views += await self.store(queue).read(ids[first : first + READ_AT_ONCE], version)
        return await self._shown(queue, views, settings)

    @staticmethod
    def _answer(queue: str, accepted: Accepted, document: Document | None) -> Document | MaitredError:
        if document is None:
            # Somebody deleted it between the two calls.
            return UnknownJob(queue, accepted.id)
        return {**document, "outcome": accepted.outcome}


def _check_state(state: str | None, settings: Settings) -> None:
    states = ("pending", *settings.stages, "held", "failed", "completed")
    if state is not None and state not in states:
        raise InvalidJob([Fault("state", f"must be one of {', '.join(states)}")])
