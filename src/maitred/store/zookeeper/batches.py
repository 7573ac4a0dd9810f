"""The verbs on a batch in the tree.

A batch is made whole or not at all: an empty item first, then one step that fills it and notes its external
id. Its state moves by the table of `core.batch`, with a check of the status version. Whether all its jobs
have ended is read from the buckets' sizes, and decided under the batch's lock: a step that brings an ended
job back also writes the batch's status, so one of the two is refused.
"""

import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from maitred.core.batch import MOVES, Batch, BatchOrder, BatchPut, BatchState, RowView
from maitred.errors import (
    BatchReporting,
    BatchSealed,
    BatchUnfinished,
    IllegalMove,
    LockLost,
    NotFound,
    NotHeld,
    OtherSubmitter,
    Overtaken,
    UnknownBatch,
)
from maitred.store.zookeeper import payloads
from maitred.store.zookeeper.locks import Lock, Locks
from maitred.store.zookeeper.payloads import NODE_LIMIT, Expansion, Reason
from maitred.store.zookeeper.records import READ_TOGETHER, BatchEntry, JobEntry, Reader, part_name
from maitred.store.zookeeper.session import (
    Check,
    Create,
    Delete,
    Op,
    OutcomeUnknown,
    Put,
    Refused,
    Session,
    certain,
    never,
)
from maitred.store.zookeeper.tree import BID, DELETED, Tree, is_item, item_names

SETTLED = (BatchState.COMPLETED, BatchState.FAILED)


class Batches:
    """Makes and changes batches of one tree."""

    def __init__(self, queue: str, session: Session, reader: Reader, clock: Callable[[], int]) -> None:
        self.queue, self.session, self.reader, self.clock = queue, session, reader, clock
        self.tree: Tree = reader.tree
        self.locks = Locks(session)
        self._settled: set[str] = set()

    # ---------------------------------------------------------------- making and finding

    async def create(self, order: BatchOrder) -> BatchPut:
        """Make a batch, or give the one with that external id; OtherSubmitter if it is another's."""
        while True:
            if order.external_id and (known := await self._known(order)):
                return known
            bid = await self._item()
            made = await self._fill(bid, order)
            if made:
                return BatchPut(bid, created=True)
            await self._drop(bid)
            await self.session.sync(self.tree.uuids)

    async def find(self, external_id: str) -> str | None:
        """Give the batch with an external id."""
        node = await self.session.get(self.tree.uuid(external_id))
        return node.data.decode() if node else None

    async def read(self, bid: str) -> BatchEntry:
        """Read a batch; UnknownBatch if there is none, nor could be."""
        entry = await self.reader.batch(bid) if is_item(bid, BID) else None
        if entry is None:
            raise UnknownBatch(self.queue, bid)
        return entry

    async def ids(self) -> list[str]:
        """Name all batches, oldest first; items that are not filled yet are among them."""
        names = await self.session.children(self.tree.batches) or []
        return sorted(name for name in names if is_item(name, BID))

    async def lock_oldest(
        self, owner: str, token: bytes, wanted: Callable[[Batch], bool]
    ) -> tuple[Lock, BatchEntry] | None:
        """Lock the oldest batch that is wanted and that nobody has locked; None if there is none.

        Batches that have ended are looked at once, and again only if their state moves.
        """
        all_ = await self.ids()
        self._settled.intersection_update(all_)
        for bid in all_:
            if bid in self._settled:
                continue
            entry = await self.reader.sound_batch(bid)
            if entry and _has_ended(entry.batch):
                entry = await self._settle(bid)
            if entry is None or not wanted(entry.batch):
                continue
            lock = await self.lock(bid, owner, token)
            if lock is None:
                continue
            # It may have changed before it was locked.
            entry = await self.reader.sound_batch(bid)
            if entry and wanted(entry.batch):
                return lock, entry
            await self.locks.give_up(lock)
        return None

    async def _settle(self, bid: str) -> BatchEntry | None:
        """Look at a batch no more until its state moves; give it as it is now that this would be heard."""
        self._settled.add(bid)
        entry = None
        try:
            await self.session.watch(self.tree.batch(bid, "status"), partial(self._settled.discard, bid))
            entry = await self.reader.sound_batch(bid)
        finally:
            if entry is None or not _has_ended(entry.batch):
                self._settled.discard(bid)
        return entry

    async def lock(self, bid: str, owner: str, token: bytes) -> Lock | None:
        """Lock a batch; None if somebody has it, UnknownBatch if there is none."""
        try:
            return await self.locks.take(self.tree.batch(bid), owner, token, self.clock())
        except NotFound:
            raise UnknownBatch(self.queue, bid) from None

    # ---------------------------------------------------------------- changing

    async def seal(self, bid: str, lock: Lock | None = None, fault: str = "") -> BatchEntry:
        """Close a batch to new jobs, at once or when it is expanded; BatchSealed, LockLost.

        With its lock, by whoever expanded it: that is done, or could not be, and then it says why.
        """

        def sealed(entry: BatchEntry) -> dict[str, Any]:
            if entry.batch.sealed:
                raise BatchSealed
            if lock is None:
                return {"sealing": True, "sealed": not entry.batch.expanding}
            done = entry.expansion.sealing or bool(fault)
            return {"sealed": done, "expanding": False, "fault": payloads.cut(fault)}

        return await self._again(bid, sealed, lock)

    async def move(self, bid: str, state: BatchState, lock: Lock | None = None, **facts: Any) -> BatchEntry:
        """Give a batch another state, with facts of its expansion; IllegalMove, LockLost."""
        return await self._again(bid, lambda _entry: {"state": state, **facts}, lock)

    async def note(self, bid: str, lock: Lock | None = None, **facts: Any) -> BatchEntry:
        """Note facts of a batch, such as tries to send its report; LockLost."""
        return await self._again(bid, lambda _entry: facts, lock)

    async def hold(self, bid: str, reason: Reason) -> BatchEntry:
        """Hold a batch; IllegalMove if it is past that."""
        return await self.move(bid, BatchState.HELD, hold=reason)

    async def unhold(self, bid: str) -> BatchEntry:
        """Let a batch go on; NotHeld."""

        def freed(entry: BatchEntry) -> dict[str, Any]:
            if entry.batch.state is not BatchState.HELD:
                raise NotHeld
            state = BatchState.PROCESSING if entry.expansion.rows else BatchState.PENDING
            return {"state": state, "hold": None}

        return await self._again(bid, freed, None)

    async def begin_report(self, bid: str, lock: Lock) -> BatchEntry | None:
        """Fix the rows of a sealed batch whose jobs have all ended; None if it is not so far. LockLost."""
        entry = await self._locked(bid, lock)
        if entry.batch.state in (BatchState.REPORTING, BatchState.UPDATE_REPORTING):
            return None if entry.batch.unfinished else entry
        if not entry.batch.sealed or entry.batch.unfinished:
            return None
        if entry.batch.state is BatchState.PENDING:
            entry = await self._write(entry, {"state": BatchState.PROCESSING})  # one without jobs
        if entry.batch.state is not BatchState.PROCESSING:
            return None
        try:
            return await self._write(entry, {"state": BatchState.REPORTING})
        except Overtaken:
            return None

    async def begin_update(self, bid: str) -> BatchEntry:
        """Ask for an update report of a failed batch; IllegalMove otherwise."""
        return await self.move(bid, BatchState.UPDATE_REPORTING)

    async def store_report(self, bid: str, lock: Lock, report: bytes, *, send: bool) -> BatchState:
        """Store a report and end the batch as its jobs did, in one step; LockLost or IllegalMove.

        One that is too large for a node is written in parts first, which nobody sees before that step.
        """
        entry = await self._locked(bid, lock)
        batch, sequence = entry.batch, entry.batch.sequence + 1
        if not batch.frozen:
            raise IllegalMove(batch.state, batch.verdict())
        data = payloads.status_report(report)
        if data is None:
            parts = await self._write_parts(bid, sequence, report)
            data = payloads.short_report(report, sequence, parts)
        path = self.tree.batch(bid, "status-report")
        op: Op = Put(path, data) if await self.session.stat(path) else Create(path, data)
        state = batch.verdict()
        facts = {"state": state, "sequence": sequence, "unsent": send, "tries": 0, "try_at": 0}
        await self._write(entry, facts, [op])
        await self._drop_parts(bid, sequence)
        return state

    async def mark_rows(self, bid: str, lock: Lock, reported: Sequence[tuple[JobEntry, str]]) -> None:
        """Note the state in which jobs are being reported; LockLost."""
        await self._locked(bid, lock)
        for begin in range(0, len(reported), READ_TOGETHER):
            ops: list[Op] = []
            for job, state in reported[begin : begin + READ_TOGETHER]:
                place = msgspec.structs.replace(job.standing, reported=state)
                ops.append(Check(self.tree.job(job.jid, "status"), job.version))
                ops.append(Put(self.tree.job(job.jid, "place"), payloads.pack(place)))
            try:
                await certain(self.session, ops, never)
            except Refused as refused:
                raise Overtaken from refused

    async def rows(self, bid: str) -> AsyncIterator[tuple[str, RowView]]:
        """Give the jobs of a batch in the order in which they came in, deleted ones among them."""
        where = await self.members(bid)
        jids = sorted(where)
        for begin in range(0, len(jids), READ_TOGETHER):
            some = jids[begin : begin + READ_TOGETHER]
            for jid, row in zip(some, await self.reader.rows(some), strict=True):
                if row is not None:
                    yield jid, row
                elif where[jid] == self.tree.layout.buckets[DELETED]:
                    yield jid, await self._grave(bid, jid)

    async def rows_of(self, bid: str, jids: Sequence[str]) -> list[RowView]:
        """Give some jobs of a batch by their ids; those that are not there were deleted."""
        rows = await self.reader.rows(jids)
        return [row or await self._grave(bid, jid) for jid, row in zip(jids, rows, strict=True)]

    async def mark_grave(self, bid: str, jid: str, state: str) -> None:
        """Note the state in which a deleted job is being reported."""
        path = self.tree.batch(bid, "states", self.tree.layout.buckets[DELETED], jid)
        node = await self.session.get(path)
        if node is None:
            return
        label = msgspec.json.decode(node.data, type=Grave) if node.data else Grave()
        data = payloads.pack(msgspec.structs.replace(label, reported=state))
        await certain(self.session, [Put(path, data)], never)

    async def members(self, bid: str) -> dict[str, str]:
        """Name the jobs of a batch and the bucket of each; a long list, for reports and deletion only."""
        found: dict[str, str] = {}
        for bucket in dict.fromkeys(self.tree.layout.buckets.values()):
            names = await self.session.children(self.tree.batch(bid, "states", bucket)) or []
            found |= dict.fromkeys(names, bucket)
        return found

    def check_removable(self, entry: BatchEntry) -> None:
        """Refuse the deletion of a batch that is not done: BatchUnfinished, or BatchReporting."""
        if entry.batch.frozen:
            raise BatchReporting
        if entry.batch.unfinished or entry.batch.expanding:
            raise BatchUnfinished

    # ---------------------------------------------------------------- steps

    async def _item(self) -> str:
        """Make an empty item and give its id; what a lost connection leaves empty is an orphan."""
        paths = await certain(self.session, [Create(f"{self.tree.batches}/{BID}", sequence=True)], never)
        return item_names(paths)[0]

    async def _fill(self, bid: str, order: BatchOrder) -> bool:
        """Fill an empty item; False if a batch with the external id came in between."""
        now, path, layout = self.clock(), self.tree.batch, self.tree.layout
        expansion = Expansion(
            sealed=order.sealed and not order.expanding,
            sealing=order.sealed,
            expanding=order.expanding,
            external_id=order.external_id,
            submitter=str(order.submitter),
            profile=order.profile,
            created_at=now,
            modified_at=now,
            write=secrets.token_hex(16),
        )
        ops: list[Op] = [
            Create(path(bid, "submission"), payloads.submission(layout, bid, order.submission, expansion)),
            Create(
                path(bid, "status"), payloads.pack(payloads.batch_status(layout, BatchState.PENDING, now))
            ),
            Create(path(bid, "expansion"), payloads.pack(expansion)),
            Create(path(bid, "keys")),
        ]
        if order.external_id:
            ops.insert(0, Create(self.tree.uuid(order.external_id), bid.encode()))
        if not layout.late_buckets:
            ops.append(Create(path(bid, "states")))
            ops += [Create(path(bid, "states", bucket)) for bucket in layout.made_buckets]

        async def landed() -> bool:
            return await self.session.stat(path(bid, "status")) is not None

        try:
            await certain(self.session, ops, landed)
        except Refused as refused:
            if refused.why == "exists":
                return False
            raise
        return True

    async def _known(self, order: BatchOrder) -> BatchPut | None:
        bid = await self.find(order.external_id)
        entry = await self.reader.batch(bid) if bid else None
        if bid is None or entry is None:
            return None
        if entry.batch.submitter != order.submitter:
            raise OtherSubmitter
        return BatchPut(bid, created=False)

    async def _drop(self, bid: str) -> None:
        try:
            await self.session.multi([Delete(self.tree.batch(bid))])
        except (Refused, OutcomeUnknown):
            return  # an orphan, and harmless

    async def _locked(self, bid: str, lock: Lock | None) -> BatchEntry:
        if lock and not await self.locks.holds(lock):
            raise LockLost
        return await self.read(bid)

    async def _again(
        self, bid: str, what: Callable[[BatchEntry], dict[str, Any]], lock: Lock | None
    ) -> BatchEntry:
        for _ in range(20):
            entry = await self._locked(bid, lock)
            try:
                return await self._write(entry, what(entry))
            except Overtaken:
                await self.session.sync(self.tree.batches)
        raise Overtaken

    async def _write(self, entry: BatchEntry, facts: dict[str, Any], also: Sequence[Op] = ()) -> BatchEntry:
        """Change a batch as it was read, in one step; IllegalMove, or Overtaken, and nothing changes then."""
        state = BatchState(facts.pop("state", entry.batch.state))
        if state is not entry.batch.state and state not in MOVES[entry.batch.state]:
            raise IllegalMove(entry.batch.state, state)
        now, token, path = self.clock(), secrets.token_hex(16), self.tree.batch
        own = msgspec.structs.replace(entry.expansion, **facts, modified_at=now, write=token)
        status = payloads.batch_status(self.tree.layout, state, now, own.fault)
        data = payloads.pack(own)
        ops = [
            Put(path(entry.id, "status"), payloads.pack(status), entry.status),
            Put(path(entry.id, "expansion"), data, entry.expanded)
            if entry.ours
            else Create(path(entry.id, "expansion"), data),
            *also,
        ]

        async def landed() -> bool:
            node = await self.session.get(path(entry.id, "expansion"))
            return node is not None and payloads.read_expansion(node.data).write == token

        try:
            await certain(self.session, ops, landed)
        except Refused as refused:
            raise Overtaken from refused
        return await self.read(entry.id)

    # ---------------------------------------------------------------- reports in parts

    async def _write_parts(self, bid: str, sequence: int, report: bytes) -> int:
        path = self.tree.batch(bid, "status-report")
        if await self.session.stat(path) is None:
            await self._put(Create(path, b'{"failed_jobs":[]}'))
        pieces = [report[begin : begin + NODE_LIMIT] for begin in range(0, len(report), NODE_LIMIT)]
        for number, piece in enumerate(pieces):
            await self._put(Create(f"{path}/{part_name(sequence, number)}", piece))
        return len(pieces)

    async def _put(self, op: Create) -> None:
        """Make a node that a try before may have left; the same content is written again."""

        async def landed() -> bool:
            return await self.session.stat(op.path) is not None

        try:
            await certain(self.session, [op], landed)
        except Refused as refused:
            if refused.why != "exists":
                raise
            await certain(self.session, [Put(op.path, op.data)], never)

    async def _drop_parts(self, bid: str, sequence: int) -> None:
        path = self.tree.batch(bid, "status-report")
        current = part_name(sequence, 0).partition("-")[0]
        for name in await self.session.children(path) or []:
            if not name.startswith(current):
                try:
                    await self.session.multi([Delete(f"{path}/{name}")])
                except (Refused, OutcomeUnknown):
                    return  # the next report, or the batch's end, takes them away

    async def _grave(self, bid: str, jid: str) -> RowView:
        bucket = self.tree.layout.buckets[DELETED]
        node = await self.session.get(self.tree.batch(bid, "states", bucket, jid))
        label = msgspec.json.decode(node.data, type=Grave) if node and node.data else Grave()
        return RowView(label.id, label.label, DELETED, "", label.reported)


class Grave(msgspec.Struct, frozen=True, omit_defaults=True):
    """What stays of a deleted job with its batch, where the layout does not keep the job."""

    id: str = ""
    key: str = ""
    label: bytes = b""
    reported: str = ""


def _has_ended(batch: Batch) -> bool:
    """Tell whether a batch has nothing more to wait for: it is reported, and its report has been sent."""
    return batch.state in SETTLED and not batch.unsent
