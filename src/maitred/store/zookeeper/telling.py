"""What the line decided alone goes to the tree: an expiry, a hold that was met, attempts that are spent.

Doing it twice does no harm: the state is the same then. Where the tree has moved on meanwhile, the line was
behind when it decided, and is brought after the tree instead.
"""

from maitred.core.job import View
from maitred.core.stages import HELD
from maitred.errors import Conflict, UnknownJob
from maitred.store.zookeeper.batching import Batching
from maitred.store.zookeeper.bridge import Bridge
from maitred.store.zookeeper.payloads import Reason
from maitred.store.zookeeper.records import JobEntry
from maitred.store.zookeeper.tree import ENDED


class Telling:
    """Tells the tree of one queue what its line decided."""

    def __init__(self, bridge: Bridge, batching: Batching) -> None:
        self.bridge, self.batching = bridge, batching

    async def tell(self, limit: int) -> int:
        """Tell the tree some of what it has not heard; give how much that was."""
        unsaid = await self.bridge.line.unsaid(limit)
        entries = await self.bridge.read([view.job.ledger for view in unsaid.views])
        for view, entry in zip(unsaid.views, entries, strict=True):
            await self._tell(view, entry)
        for jid in unsaid.gone:
            try:
                await self.bridge.jobs.delete(jid, forget=True)
            except UnknownJob:
                continue
        if unsaid.gone:
            await self.bridge.line.forgotten(unsaid.gone)
        return len(unsaid.views) + len(unsaid.gone)

    async def _tell(self, view: View, entry: JobEntry | None) -> None:
        job, stages = view.job, self.bridge.settings.stages
        state = job.state(stages)
        if entry is None:
            await self.bridge.line.said(job.record, state, job.status)
            return
        if entry.state != state:
            changed = None
            if entry.mark <= job.status:
                changed = await self._change(entry, view, state)
            if changed is None:
                await self.bridge.bring([entry.jid], even_run=True)
                return
            entry = changed
        await self.bridge.said(job.record, entry)
        if entry.batch and entry.state in ENDED:
            await self.batching.settle(entry.batch)

    async def _change(self, entry: JobEntry, view: View, state: str) -> JobEntry | None:
        """Move a job in the tree as the line has moved it; None if the tree has moved on."""
        job = view.job
        holds = [Reason(held.kind, held.name, held.by, held.reason, held.at) for held in view.holds]
        try:
            return await self.bridge.jobs.change(
                entry,
                state,
                holds=tuple(holds) if state == HELD else (),
                run="",
                code=job.code,
                message=job.message,
            )
        except Conflict:
            return None
