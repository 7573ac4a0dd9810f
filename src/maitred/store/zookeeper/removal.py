"""Deleting a batch without trace, a bounded number of jobs a step.

The first step takes away its status and its external id: from then on it is unknown, and what is left is an
item without a status, which is what an item looks like that was never filled. One that stays so for an hour
was left by a crash: `check` names it, and `sweep` takes it away.
"""

from collections.abc import Callable, Sequence
from functools import partial

from maitred.core.job import DEFAULT_PRIORITY
from maitred.errors import Overtaken
from maitred.store.zookeeper.batches import Batches
from maitred.store.zookeeper.records import Unreadable
from maitred.store.zookeeper.session import Delete, Node, Op, Put, Refused, certain
from maitred.store.zookeeper.tree import BID, FACTS, JID, entry_name, is_item

STEP = 50
LEAVES = 500
ORPHANED = 3_600_000


class Removal:
    """Deletes batches, and what crashes left, from one tree."""

    def __init__(self, batches: Batches, clock: Callable[[], int]) -> None:
        self.batches, self.clock = batches, clock
        self.session, self.reader, self.tree = batches.session, batches.reader, batches.tree

    async def remove(self, bid: str) -> None:
        """Delete a batch with its jobs; UnknownBatch, BatchUnfinished or BatchReporting."""
        entry = await self.batches.read(bid)
        self.batches.check_removable(entry)
        # Writing nothing to the item gives it the time from which on what is left of it is an orphan.
        ops: list[Op] = [Delete(self.tree.batch(bid, "status"), entry.status), Put(self.tree.batch(bid), b"")]
        external_id = entry.batch.external_id
        if external_id and await self.batches.find(external_id) == bid:
            ops.append(Delete(self.tree.uuid(external_id)))
        try:
            await certain(self.session, ops, partial(self._absent, self.tree.batch(bid, "status")))
        except Refused as refused:
            raise Overtaken from refused
        await self.clear_batch(bid)

    async def sweep(self) -> int:
        """Take away what crashes left for an hour or longer; tell how many items that were."""
        orphans = await self.orphans()
        for item in orphans:
            if is_item(item, BID):
                await self.clear_batch(item)
            else:
                await self._clear(self.tree.job(item))
        return len(orphans)

    async def orphans(self) -> list[str]:
        """Name the batches and jobs that have had no status for an hour."""
        found: list[str] = []
        for parent, prefix in ((self.tree.batches, BID), (self.tree.jobs, JID)):
            names = [name for name in await self.session.children(parent) or [] if is_item(name, prefix)]
            for begin in range(0, len(names), STEP):
                some = names[begin : begin + STEP]
                statuses = await self.session.stat_all([f"{parent}/{name}/status" for name in some])
                bare = [name for name, status in zip(some, statuses, strict=True) if status is None]
                items = await self.session.stat_all([f"{parent}/{name}" for name in bare])
                found += [name for name, item in zip(bare, items, strict=True) if item and self._is_old(item)]
        return sorted(found)

    def _is_old(self, item: Node) -> bool:
        return item.modified + ORPHANED < self.clock() // 1_000

    async def clear_batch(self, bid: str) -> None:
        """Delete all that is left of a batch which has no status any more: its jobs first, itself last."""
        jids = sorted(await self.batches.members(bid))
        for begin in range(0, len(jids), STEP):
            await self._clear_jobs(jids[begin : begin + STEP])
        await self._clear(self.tree.batch(bid))

    async def _clear_jobs(self, jids: Sequence[str]) -> None:
        """Delete jobs with their index entries in one step if they are as they should be, else one by one."""
        facts = ("status", "priority")
        nodes = await self.session.get_all([self.tree.job(jid, fact) for jid in jids for fact in facts])
        ops: list[Op] = []
        try:
            for jid, status, priority in zip(jids, nodes[::2], nodes[1::2], strict=True):
                if status is None or priority is None:
                    continue
                entry = self.tree.entry(self.reader.state_of(status), int(priority.data), jid)
                ops += [Delete(self.tree.job(jid, fact)) for fact in FACTS]
                ops += [Delete(self.tree.job(jid)), Delete(entry)]
            if ops:
                await certain(self.session, ops, partial(self._absent, ops[-2].path))
        except (Refused, ValueError):
            ops = []
        cleared = {op.path for op in ops}
        for jid in jids:
            if self.tree.job(jid) not in cleared:
                await self._clear_job(jid)

    async def _clear_job(self, jid: str) -> None:
        """Delete a job, whatever it has, and its index entry in one step, as long as nobody else does."""
        while True:
            names = await self.session.children(self.tree.job(jid))
            if names is None:
                return
            ops: list[Op] = [Delete(self.tree.job(jid, name)) for name in names]
            ops.append(Delete(self.tree.job(jid)))
            ops += [Delete(path) for path in await self._entries(jid)]
            try:
                await certain(self.session, ops, partial(self._absent, self.tree.job(jid)))
            except Refused:
                await self.session.sync(self.tree.jobs)

    async def _entries(self, jid: str) -> Sequence[str]:
        """Find the index entries of a job: where its status says, or, if that is spoilt, in every state."""
        try:
            entry = await self.reader.job(jid)
        except Unreadable:
            entry = None
        states = [entry.state] if entry else self.reader.job_states
        priority = await self.session.get(self.tree.job(jid, "priority"))
        name = entry_name(int(priority.data) if priority and priority.data else DEFAULT_PRIORITY, jid)
        paths = [f"{self.tree.state(state)}/{name}" for state in states]
        stats = await self.session.stat_all(paths)
        return [path for path, stat in zip(paths, stats, strict=True) if stat is not None]

    async def _clear(self, path: str) -> None:
        """Delete a node with all that is under it; leaves go many in a step."""
        names = sorted(await self.session.children(path) or [])
        for begin in range(0, len(names), LEAVES):
            below = [f"{path}/{name}" for name in names[begin : begin + LEAVES]]
            try:
                await certain(
                    self.session, [Delete(each) for each in below], partial(self._absent, below[-1])
                )
            except Refused:
                for each in below:
                    await self._clear(each)
        try:
            await certain(self.session, [Delete(path)], partial(self._absent, path))
        except Refused as refused:
            if refused.why != "missing":
                raise Overtaken from refused

    async def _absent(self, path: str) -> bool:
        return await self.session.stat(path) is None
