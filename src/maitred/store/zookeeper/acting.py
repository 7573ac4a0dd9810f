"""What operators do to jobs where the ledger is a tree: it is written there first, and then done in the line.

A crash between the two leaves the line behind; it is brought after the tree when the two are next compared,
or when the job's place comes up.
"""

from collections.abc import Iterable

from maitred.core.job import HoldKind, Phase, View
from maitred.errors import AlreadyEnded, NotFailed, NotHeld, NotWaiting, UnknownJob
from maitred.store.zookeeper.batching import Batching
from maitred.store.zookeeper.bridge import Bridge
from maitred.store.zookeeper.payloads import Reason
from maitred.store.zookeeper.records import JobEntry

CANCELLED = "cancelled"


class Acting:
    """The operators' verbs on one queue."""

    def __init__(self, bridge: Bridge, batching: Batching) -> None:
        self.bridge, self.batching = bridge, batching

    # ---------------------------------------------------------------- one job

    async def cancel(self, id: str, message: str) -> None:
        """End all versions of a job that have not ended."""
        views = [view for view in await self._live(id) if view.job.ledger]
        ended: list[tuple[View, JobEntry]] = []
        for view in views:
            try:
                entry = await self.bridge.jobs.fail(view.job.ledger, None, CANCELLED, message)
            except AlreadyEnded:
                await self.bridge.bring([view.job.ledger], even_run=True)
            else:
                ended.append((view, entry))
        await self.bridge.line.cancel(id, message)
        for view, entry in ended:
            await self.bridge.said(view.job.record, entry)
        await self._settle(view for view, _ in ended)

    async def remove(self, id: str) -> None:
        """Delete all versions of a job; its batch keeps its name."""
        newest = await self._view(id)
        older = [await self.bridge.version(id, number) for number in range(1, newest.job.version)]
        views = [newest, *(view for view in older if view)]
        for view in views:
            if view.job.ledger:
                try:
                    await self.bridge.jobs.delete(view.job.ledger)
                except UnknownJob:
                    continue
        await self.bridge.line.remove(id)
        await self._settle(views)

    async def retry(self, id: str) -> None:
        """Let a failed job go on where it failed."""
        view = await self._view(id)
        if not view.job.ledger:
            await self.bridge.line.retry(id)
            return
        if view.job.phase is not Phase.ENDED or not view.job.code:
            raise NotFailed
        now = self.bridge.ledger.clock()
        expires_at = view.job.expires_at if view.job.expires_at > now else 0
        await self.bridge.jobs.retry(view.job.ledger, release=now, expires_at=expires_at)
        await self.bridge.bring([view.job.ledger])

    async def prioritise(self, id: str, priority: int) -> None:
        """Give a waiting job another priority."""
        view = await self._view(id)
        if view.job.ledger:
            if view.job.phase not in (Phase.WAITING, Phase.HELD):
                raise NotWaiting
            entry = await self.bridge.jobs.prioritise(view.job.ledger, priority)
            await self.bridge.line.prioritise(id, priority)
            await self.bridge.line.said(view.job.record, "", entry.mark)
        else:
            await self.bridge.line.prioritise(id, priority)

    async def note_place(self, id: str) -> None:
        """Write to the tree where the line has put a job, for whoever rebuilds it."""
        view = await self._view(id)
        job = view.job
        if job.ledger and job.phase is not Phase.ENDED:
            release = job.release if view.release is None else view.release
            entry = await self.bridge.jobs.place(
                job.ledger,
                band=int(job.band),
                release=release,
                arrival=job.arrival,
                level=job.level,
                duration=job.duration,
            )
            await self.bridge.line.said(job.record, "", entry.mark)

    # ---------------------------------------------------------------- holds

    async def hold(self, kind: HoldKind, name: str, by: str, reason: str) -> None:
        """Hold a job, or many."""
        held = Reason(kind, name, by, reason, self.bridge.ledger.clock())
        if kind == "job":
            view = await self._view(name)
            entry = await self.bridge.jobs.hold(view.job.ledger, held) if view.job.ledger else None
            await self.bridge.line.hold(kind, name, by, reason)
            await self._said(view, entry)
            return
        if kind == "batch":
            await self.batching.batches.hold(name, held)
        else:
            await self.bridge.ledger.hold(held)
        await self.bridge.line.hold(kind, name, by, reason)

    async def unhold(self, kind: HoldKind, name: str) -> None:
        """Take a hold away."""
        if kind == "job":
            view = await self._view(name)
            if view.job.ledger and view.job.hold is None:
                raise NotHeld
            entry = await self.bridge.jobs.unhold(view.job.ledger, kind, name) if view.job.ledger else None
            await self.bridge.line.unhold(kind, name)
            await self._said(view, entry)
            return
        if kind == "batch":
            await self.batching.batches.unhold(name)
            await self.batching.settle(name)
        else:
            await self.bridge.ledger.unhold(kind, name)
        await self.bridge.line.unhold(kind, name)

    # ---------------------------------------------------------------- parts

    async def _view(self, id: str) -> View:
        [view] = await self.bridge.line.read([id])
        if view is None:
            raise UnknownJob(self.bridge.queue, id)
        return view

    async def _live(self, id: str) -> list[View]:
        """Show the versions of a job that have not ended: the newest, and older ones that run."""
        newest = await self._view(id)
        older = [
            await self.bridge.version(id, number)
            for number in newest.running_versions
            if number != newest.job.version
        ]
        return [view for view in (newest, *older) if view and view.job.phase is not Phase.ENDED]

    async def _said(self, view: View, entry: JobEntry | None) -> None:
        if entry is not None:
            await self.bridge.said(view.job.record, entry)

    async def _settle(self, views: Iterable[View]) -> None:
        batches = {view.job.batch for view in views if view.job.batch}
        for bid in batches:
            await self.batching.settle(bid)
