"""A queue whose ledger is a tree in ZooKeeper: the tree is the truth, the line an index of it.

Where a job's state changes, the tree is written first. All other verbs are the line's own. Each idea is in a
part of its own: putting, runs and shifts, acting, batching, telling, reconciling.
"""

import time
from collections.abc import AsyncIterator, Sequence

from maitred.core.batch import Batch, BatchOrder, BatchPut, BatchState, Errand
from maitred.core.events import Entry
from maitred.core.invariants import Violation
from maitred.core.job import (
    Finish,
    HoldKind,
    Job,
    Lease,
    Message,
    Moment,
    Order,
    Put,
    Refusal,
    Restored,
    Shift,
    View,
)
from maitred.core.settings import Settings
from maitred.store.passing_on import PassingOn
from maitred.store.port import BatchPage, Progress, RowPage, Store
from maitred.store.valkey.coalesce import Coalescer
from maitred.store.zookeeper import check as tree_check
from maitred.store.zookeeper.acting import Acting
from maitred.store.zookeeper.agreement import disagreements
from maitred.store.zookeeper.batch_news import BatchNews
from maitred.store.zookeeper.batching import Batching
from maitred.store.zookeeper.bridge import Bridge
from maitred.store.zookeeper.importing import Importing
from maitred.store.zookeeper.ledger import Ledger
from maitred.store.zookeeper.putting import Putting
from maitred.store.zookeeper.reconciling import Reconciling, Tally
from maitred.store.zookeeper.runs import Runs
from maitred.store.zookeeper.shifts import Shifts
from maitred.store.zookeeper.telling import Telling
from maitred.store.zookeeper.tree import BID, is_item

# What crashes left is there for an hour before it is swept, and to find it every item is looked at.
ORPHANS_EVERY = 600.0


class TreeStore(PassingOn):
    """The store of one queue, on a line and on an open ledger; the verbs are those of the port."""

    def __init__(self, line: Store, ledger: Ledger, settings: Settings) -> None:
        self.queue, self._line, self.ledger = line.queue, line, ledger
        self.bridge = bridge = Bridge(line, ledger, settings)
        self.batching = batching = Batching(bridge)
        self.runs = Runs(bridge)
        self.shifts = Shifts(bridge, self.runs, batching)
        self.acting = Acting(bridge, batching)
        self.telling = Telling(bridge, batching)
        self.reconciling = Reconciling(bridge)
        self.importing = Importing(bridge)
        self.batch_news = BatchNews(bridge)
        self._puts = Coalescer(Putting(bridge, batching).put)
        self._orphans_next = 0.0

    async def _target(self) -> Store:
        return self._line

    async def close(self) -> None:
        """End what is under way, and the session."""
        await self.shifts.close()
        await self.runs.close()
        await self.ledger.close()

    # ---------------------------------------------------------------- the two together

    async def reconcile(self) -> Tally:
        """Bring the line after the tree, once."""
        return await self.reconciling.reconcile()

    def follow(self) -> AsyncIterator[Tally]:
        """Bring the line after the tree whenever that moves, without end."""
        return self.reconciling.follow()

    async def tell(self, limit: int) -> int:
        """Tell the tree what the line decided alone; give how much that was."""
        return await self.telling.tell(limit)

    async def sweep_tree(self) -> None:
        """Forget what is old in the tree: batches that were reported long ago, and what crashes left."""
        await self.batching.sweep(self.bridge.settings.retention)
        if time.monotonic() >= self._orphans_next:
            self._orphans_next = time.monotonic() + ORPHANS_EVERY
            await self.ledger.removal.sweep()

    async def check(self, *, repair: bool = False, progress: Progress | None = None) -> list[Violation]:
        """Look for what is broken in the line, in the tree, and between them."""
        found = await self._line.check(repair=repair, progress=progress)
        found += await tree_check.check(self.ledger, progress)
        if repair:
            await self.reconcile()
        return found + await disagreements(self.bridge)

    async def restore(self, jobs: Sequence[Job]) -> list[Restored]:
        """Take in jobs from elsewhere as they are, first into the tree; those that are known are ignored."""
        return await self.importing.take_in(jobs)

    async def tick(self) -> Moment:
        """Do what the clock asks for; what there is to do in the tree only whoever looks there knows."""
        moment = await self._line.tick()
        return moment._replace(idle_until=moment.now)

    # ---------------------------------------------------------------- jobs

    async def put(self, orders: Sequence[Order]) -> list[Put | Refusal]:
        """Create or update jobs in turn."""
        return await self._puts.put(orders) if orders else []

    async def put_shown(self, order: Order) -> tuple[Put | Refusal, View | None]:
        """Create or update a job and show it."""
        [answer] = await self.put([order])
        [view] = await self._line.read([order.id])
        return answer, view

    async def release(self, id: str, nonce: int | None = None) -> None:
        """Move a job to the front."""
        await self._line.release(id, nonce)
        await self.acting.note_place(id)

    async def delay(self, id: str, nonce: int | None = None) -> None:
        """Move a job to the end."""
        await self._line.delay(id, nonce)
        await self.acting.note_place(id)

    async def shorten(self, id: str, duration: int) -> None:
        """Lower a job's duration."""
        await self._line.shorten(id, duration)
        await self.acting.note_place(id)

    async def remove(self, id: str) -> None:
        """Delete all versions of a job."""
        await self.acting.remove(id)

    async def cancel(self, id: str, message: str) -> None:
        """End all versions that have not ended."""
        await self.acting.cancel(id, message)

    async def prioritise(self, id: str, priority: int) -> None:
        """Give a waiting job another priority."""
        await self.acting.prioritise(id, priority)

    async def retry(self, id: str) -> None:
        """Let a failed job go on where it failed."""
        await self.acting.retry(id)

    async def hold(self, kind: HoldKind, name: str, by: str, reason: str) -> None:
        """Hold a job, or many."""
        await self.acting.hold(kind, name, by, reason)

    async def unhold(self, kind: HoldKind, name: str) -> None:
        """Take a hold away."""
        await self.acting.unhold(kind, name)

    # ---------------------------------------------------------------- batches

    async def create_batch(self, order: BatchOrder) -> BatchPut:
        """Make a batch, or give the known one."""
        return await self.batching.create(order)

    async def seal_batch(self, id: str, *, token: bytes = b"", fault: str = "") -> None:
        """Close a batch."""
        await self.batching.seal(id, token, fault)

    async def lock_batch(self, owner: str, token: bytes) -> Errand | None:
        """Lock the oldest batch that has work."""
        return await self.batching.lock(owner, token)

    async def keep_batch(self, id: str, token: bytes) -> None:
        """Keep a lock."""
        await self.batching.keep(id, token)

    async def unlock_batch(self, id: str, token: bytes) -> None:
        """Give a lock up."""
        await self.batching.unlock(id, token)

    async def mark_rows(self, id: str, token: bytes, reported: Sequence[tuple[str, str]]) -> None:
        """Note what is being reported of some jobs."""
        await self.batching.mark_rows(id, token, reported)

    async def report_batch(self, id: str, token: bytes, report: bytes, *, send: bool) -> BatchState:
        """Store a report and end the batch."""
        return await self.batching.report(id, token, report, send=send)

    async def sent_batch(self, id: str, token: bytes, try_again_in: int | None) -> None:
        """Note what became of sending a report."""
        await self.batching.sent(id, token, try_again_in)

    async def update_batch(self, id: str) -> None:
        """Ask for an update report."""
        await self.batching.update(id)

    async def remove_batch(self, id: str) -> None:
        """Delete a batch with its jobs."""
        await self.batching.remove(id)

    async def batch(self, id: str) -> Batch | None:
        """Show a batch; whoever listens hears of its next change."""
        if is_item(id, BID):
            await self.batch_news.look_at(id)
        return await self.batching.batch(id)

    async def news(self, after: str, timeout: float) -> list[Entry]:
        """Wait for what changed."""
        return self.batch_news.added_to(await self._line.news(after, timeout))

    async def batches(
        self,
        state: str | None = None,
        external_id: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> BatchPage:
        """Show batches, newest first."""
        return await self.batching.page(state, external_id, cursor, limit)

    async def batch_rows(self, id: str, after: int, limit: int) -> RowPage:
        """Show the jobs of a batch."""
        return await self.batching.rows(id, after, limit)

    # ---------------------------------------------------------------- workers

    async def join(self, worker: str, slots: int, serves: Sequence[str], about: bytes = b"") -> Shift:
        """Let a worker in."""
        return await self.shifts.join(worker, slots, serves, about)

    async def take(self, worker: str) -> Shift:
        """Give the worker what it has room for."""
        return await self.shifts.take(worker)

    async def finish(self, worker: str, results: Sequence[Finish]) -> Shift:
        """End jobs and give the worker the next ones."""
        return await self.shifts.finish(worker, results)

    async def hand_back(self, worker: str, leases: Sequence[Lease]) -> Shift:
        """Put jobs back at the front."""
        return await self.shifts.hand_back(worker, leases)

    async def renew(self, worker: str, held: Sequence[Lease]) -> Shift:
        """Extend the worker's lease."""
        return await self.shifts.renew(worker, held)

    async def leave(self, worker: str) -> Shift:
        """Take the worker's free slots off the floor."""
        return await self.shifts.leave(worker)

    async def park(self, worker: str, timeout: float) -> list[Message]:
        """Wait for messages in the worker's inbox."""
        return await self.shifts.park(worker, timeout)
