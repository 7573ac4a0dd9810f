"""The verbs on batches where the ledger is a tree, as the port has them.

A lock is an ephemeral node of this process's session, known by the batch and the token that it was taken
with, and given up when nobody has kept it for a lease. When the last job of a sealed batch has ended, the
batch goes to `reporting` under its lock: at once by whoever ended the job, or, if that one died, by the next
who looks for work.
"""

import secrets
from collections.abc import Sequence
from dataclasses import replace

from maitred.core.batch import UNFINISHED, Batch, BatchOrder, BatchPut, BatchState, Errand, RowView
from maitred.core.job import Phase
from maitred.errors import BatchUnfinished, Conflict, LockLost, NotFound, UnknownBatch
from maitred.store.port import BatchPage, RowPage
from maitred.store.zookeeper.bridge import Bridge
from maitred.store.zookeeper.locks import Lock
from maitred.store.zookeeper.records import READ_TOGETHER
from maitred.store.zookeeper.tree import BID, is_item, unescape

OWNER = "maitred"


class Batching:
    """The batches of one queue."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge, self.ledger = bridge, bridge.ledger
        self.batches = bridge.ledger.batches
        self._locks: dict[tuple[str, bytes], Lock] = {}
        self._kept_until: dict[tuple[str, bytes], float] = {}
        self._members: tuple[str, int, list[str]] = ("", 0, [])

    # ---------------------------------------------------------------- filling

    async def create(self, order: BatchOrder) -> BatchPut:
        """Make a batch, or give the known one."""
        return await self.batches.create(order)

    async def seal(self, id: str, token: bytes, fault: str) -> None:
        """Close a batch, or end its expansion; it is reported if it has nothing more to wait for."""
        lock = self.lock_of(id, token) if token else None
        await self.batches.seal(id, lock, fault)
        if lock:
            await self.batches.begin_report(id, lock)
        else:
            await self.settle(id)

    async def settle(self, id: str) -> None:
        """Let a batch be reported if it is sealed and all its jobs have ended; nothing otherwise."""
        counts = await self.ledger.reader.counts(id)
        if any(counts[kind] for kind in UNFINISHED):
            return
        entry = await self.ledger.reader.sound_batch(id)
        if entry is None or not _is_ready(entry.batch):
            return
        try:
            lock = await self.batches.lock(id, OWNER, secrets.token_bytes(16))
            if lock is None:
                return  # whoever has it looks for itself
            try:
                await self.batches.begin_report(id, lock)
            finally:
                await self.ledger.locks.give_up(lock)
        except (Conflict, NotFound):
            return

    # ---------------------------------------------------------------- servers

    async def lock(self, owner: str, token: bytes) -> Errand | None:
        """Lock the oldest batch that has work; a report is sent after all other work."""
        await self._give_up_unkept()

        def first(batch: Batch) -> bool:
            return _is_ready(batch) or batch.work(self.ledger.clock()) in ("expand", "report")

        def last(batch: Batch) -> bool:
            return batch.work(self.ledger.clock()) == "send"

        for wanted in (first, last):
            found = await self.batches.lock_oldest(owner, token, wanted)
            if found is None:
                continue
            lock, entry = found
            self._locks[entry.id, token] = lock
            self._prolong(entry.id, token)
            if _is_ready(entry.batch):
                entry = await self.batches.begin_report(entry.id, lock) or entry
            work = entry.batch.work(self.ledger.clock())
            if work is not None:
                return Errand(entry.batch, work)
            await self.unlock(entry.id, token)
        return None

    def lock_of(self, id: str, token: bytes) -> Lock:
        """Give the lock that was taken with a token; LockLost."""
        lock = self._locks.get((id, token))
        if lock is None:
            raise LockLost
        return lock

    async def keep(self, id: str, token: bytes) -> None:
        """Keep a lock for as long as a lease from now; LockLost."""
        if not await self.ledger.locks.holds(self.lock_of(id, token)):
            self._locks.pop((id, token), None)
            raise LockLost
        self._prolong(id, token)

    def _prolong(self, id: str, token: bytes) -> None:
        self._kept_until[id, token] = self.ledger.clock() + self.bridge.settings.lease

    async def _give_up_unkept(self) -> None:
        """Give up what its owner did not keep: the session alone would keep it for as long as it lives."""
        now = self.ledger.clock()
        for (id, token), until in list(self._kept_until.items()):
            if until <= now:
                await self.unlock(id, token)

    async def unlock(self, id: str, token: bytes) -> None:
        """Give a lock up."""
        lock = self._locks.pop((id, token), None)
        self._kept_until.pop((id, token), None)
        if lock is not None:
            await self.ledger.locks.give_up(lock)

    async def mark_rows(self, id: str, token: bytes, reported: Sequence[tuple[str, str]]) -> None:
        """Note what is being reported of some jobs."""
        lock = self.lock_of(id, token)
        paths = [self.bridge.tree.key(id, job) for job, _ in reported]
        nodes = await self.bridge.session.get_all(paths)
        states = [state for _, state in reported]
        known = [(node.data.decode(), state) for node, state in zip(nodes, states, strict=True) if node]
        entries = await self.ledger.reader.jobs([jid for jid, _ in known])
        pairs = list(zip(known, entries, strict=True))
        await self.batches.mark_rows(id, lock, [(entry, state) for (_, state), entry in pairs if entry])
        for (jid, state), entry in pairs:
            if entry is None:
                await self.batches.mark_grave(id, jid, state)

    async def report(self, id: str, token: bytes, report: bytes, *, send: bool) -> BatchState:
        """Store a report and end the batch."""
        lock = self.lock_of(id, token)
        entry = await self.batches.read(id)
        if entry.batch.state is BatchState.UPDATE_REPORTING and entry.batch.unfinished:
            raise BatchUnfinished
        return await self.batches.store_report(id, lock, report, send=send)

    async def sent(self, id: str, token: bytes, try_again_in: int | None) -> None:
        """Note what became of sending a report."""
        tries = (await self.batches.read(id)).batch.tries + 1
        again = try_again_in is not None
        try_at = self.ledger.clock() + (try_again_in or 0) if again else 0
        await self.batches.note(id, self.lock_of(id, token), tries=tries, unsent=again, try_at=try_at)

    # ---------------------------------------------------------------- operators and readers

    async def update(self, id: str) -> None:
        """Ask for an update report."""
        await self.batches.begin_update(id)

    async def remove(self, id: str) -> None:
        """Delete a batch with its jobs, in the tree and then in the line."""
        names = await self.bridge.session.children(self.bridge.tree.batch(id, "keys")) or []
        await self.ledger.removal.remove(id)
        line = self.bridge.line
        await line.unhold("batch", id)
        ids = [unescape(name) for name in names]
        for begin in range(0, len(ids), READ_TOGETHER):
            for view in await line.read(ids[begin : begin + READ_TOGETHER]):
                if view and view.job.batch == id and view.job.phase is Phase.ENDED:
                    await line.remove(view.job.id)

    async def sweep(self, retention: int) -> None:
        """Forget batches that were reported long ago, and seal those that were left open for as long."""
        for id in await self.batches.ids():
            # Most are not old, and to count their jobs takes long.
            entry = await self.ledger.reader.sound_batch(id, whole=False)
            if entry is None or entry.batch.modified_at > self.ledger.clock() - retention:
                continue
            entry = await self.ledger.reader.sound_batch(id)
            if entry is None:
                continue
            batch = entry.batch
            try:
                if not batch.sealed and not batch.expanding:
                    await self.seal(id, b"", "")
                elif batch.reported and not batch.unfinished and not batch.frozen and not batch.unsent:
                    await self.remove(id)
            except (Conflict, NotFound):
                continue  # somebody else was quicker

    async def batch(self, id: str) -> Batch | None:
        """Show a batch."""
        entry = await self.ledger.reader.batch(id) if is_item(id, BID) else None
        if entry is None:
            return None
        holder = await self.ledger.locks.holder(self.bridge.tree.batch(id))
        return replace(entry.batch, owner=holder.owner if holder else "")

    async def page(
        self, state: str | None, external_id: str | None, cursor: str | None, limit: int
    ) -> BatchPage:
        """Show batches, newest first."""
        if external_id is not None:
            found = await self.batches.find(external_id)
            ids = [found] if found else []
        else:
            ids = (await self.batches.ids())[::-1]
        page: list[Batch] = []
        for id in ids:
            if cursor is not None and id >= cursor:
                continue
            entry = await self.ledger.reader.sound_batch(id)
            if entry is None or state not in (None, entry.batch.state):
                continue
            if len(page) == limit:
                return BatchPage(page, page[-1].id, None if state else len(ids))
            page.append(entry.batch)
        return BatchPage(page, None, None if state else len(ids))

    async def rows(self, id: str, after: int, limit: int) -> RowPage:
        """Show the jobs of a batch; the list of them is kept while the batch does not change."""
        entry = await self.ledger.reader.batch(id, whole=False) if is_item(id, BID) else None
        if entry is None:
            raise UnknownBatch(self.bridge.queue, id)
        if self._members[:2] != (id, entry.status) or not after:
            self._members = (id, entry.status, sorted(await self.batches.members(id)))
        jids = self._members[2]
        rows: list[RowView] = await self.batches.rows_of(id, jids[after : after + limit])
        end = after + limit
        return RowPage(rows, end if end < len(jids) else None)


def _is_ready(batch: Batch) -> bool:
    """Tell whether a batch can be reported and nobody has said so yet."""
    open_ = batch.state in (BatchState.PENDING, BatchState.PROCESSING)
    return open_ and batch.sealed and not batch.unfinished
