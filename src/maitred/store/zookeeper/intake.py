"""New jobs in the tree: a chunk at a time, one `multi` for the ids and one that fills them.

The ids of a sequential create are not known before it is done, so what is under them cannot be in the same
step. A crash between the two leaves empty items, which nobody sees and `check` names after an hour. The
second step holds the whole chunk: jobs, index entries, buckets, the keys that the batch now has, and how far
it is expanded. A key that the batch has is passed over, so doing it all again doubles nothing.
"""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from maitred.core.batch import MOVES, BatchState
from maitred.core.job import Order
from maitred.core.stages import PENDING
from maitred.errors import BatchSealed, LockLost, Overtaken, UnknownBatch
from maitred.store.zookeeper import payloads
from maitred.store.zookeeper.locks import Lock, Locks
from maitred.store.zookeeper.payloads import Standing
from maitred.store.zookeeper.records import BatchEntry, JobEntry, Reader
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
from maitred.store.zookeeper.tree import BID, JID, Tree, is_item, item_names

CHUNK = 100
CHUNK_BYTES = 300_000


class Newcomer(NamedTuple):
    """A job to be made: what its PUT asks, and the place that it is to have in line.

    One that comes from elsewhere has a state already, with the last stage that it finished and more facts.
    """

    order: Order
    release: int = 0
    arrival: int = 0
    version: int = 1
    created_at: int = 0
    state: str = PENDING
    last: str | None = None
    facts: Mapping[str, Any] = MappingProxyType({})


class Added(NamedTuple):
    """What became of one: its id in the tree, and whether it was made or known already."""

    jid: str
    created: bool


class Intake:
    """Makes jobs in one tree."""

    def __init__(self, queue: str, session: Session, reader: Reader, clock: Callable[[], int]) -> None:
        self.queue, self.session, self.reader, self.clock = queue, session, reader, clock
        self.tree: Tree = reader.tree
        self.locks = Locks(session)

    async def add(self, bid: str, newcomers: Sequence[Newcomer], lock: Lock | None = None) -> list[Added]:
        """Add jobs to a batch, or to none (`bid` empty), in their order.

        UnknownBatch, BatchSealed, TooLarge; LockLost where a lock was given that is no longer the caller's. A
        chunk is whole or not there; those before one that was refused stay.
        """
        added: list[Added] = []
        looking = True
        for chunk in _chunks(newcomers):
            if bid:
                some = await self._add_to(bid, chunk, lock, looking=looking)
                # Where all of a chunk were new, the next ones are likely new too; if not, that is refused.
                looking = not all(each.created for each in some)
            else:
                some = await self._add_alone(chunk)
            added += some
        return added

    async def add_version(self, old: JobEntry, newcomer: Newcomer, fence: list[Op]) -> str:
        """Make the next version of a job; in its batch it takes the older one's part. Overtaken."""
        jid = (await self._ids(1))[0]
        place = msgspec.structs.replace(old.standing, newer=jid, write=secrets.token_hex(16))
        ops = [*self._facts(jid, old.batch, newcomer), *fence]
        status = payloads.job_status(
            self.tree.layout,
            old.state,
            last=old.last,
            retries=old.retries,
            at=self.clock(),
            message=old.standing.message,
        )
        ops.append(Put(self.tree.job(old.jid, "status"), payloads.pack(status), old.version))
        ops.append(Put(self.tree.job(old.jid, "place"), payloads.pack(place), old.placed))
        if old.batch:
            ops.append(Delete(self.tree.bucket(old.batch, old.state, old.jid)))
            ops.append(Create(self.tree.bucket(old.batch, PENDING, jid)))
            ops.append(Put(self.tree.key(old.batch, newcomer.order.id), jid.encode()))
        try:
            await certain(self.session, ops, lambda: self._filled(jid))
        except Refused as refused:
            await self._drop([jid])
            raise Overtaken from refused
        return jid

    async def take_back(self, jid: str, id: str, older: str = "") -> None:
        """Undo the making of a job that nobody has seen: no trace of it stays.

        Where it took the part of an `older` version in its batch, that one has it again.
        """
        for _ in range(20):
            entry = await self.reader.job(jid)
            if entry is None or entry.state != PENDING:
                return
            names = await self.session.children(self.tree.job(jid)) or []
            ops: list[Op] = [Check(self.tree.job(jid, "status"), entry.version)]
            ops += [Delete(self.tree.job(jid, name)) for name in names]
            ops += [Delete(self.tree.job(jid)), Delete(self.tree.entry(PENDING, entry.priority, jid))]
            if entry.batch:
                ops += await self._out_of_batch(entry, id, older)
            try:
                await certain(self.session, ops, partial(self._emptied, jid))
            except Refused:
                await self.session.sync(self.tree.jobs)
                continue
            return
        raise Overtaken

    async def _out_of_batch(self, entry: JobEntry, id: str, older: str) -> list[Op]:
        ops: list[Op] = [Delete(self.tree.bucket(entry.batch, PENDING, entry.jid))]
        key = self.tree.key(entry.batch, id)
        old = await self.reader.job(older) if older else None
        if old is not None:
            place = msgspec.structs.replace(old.standing, newer="", write=secrets.token_hex(16))
            ops.append(Put(self.tree.job(older, "place"), payloads.pack(place), old.placed))
            ops.append(Create(self.tree.bucket(entry.batch, old.state, older)))
            return [*ops, Put(key, older.encode())]
        batch = await self.reader.batch(entry.batch, whole=False)
        if batch is not None:
            ops += [op for op in self._progress(batch, -1) if op.path.endswith("/expansion")]
        return [*ops, Delete(key)]

    async def _emptied(self, jid: str) -> bool:
        return await self.session.stat(self.tree.job(jid)) is None

    # ---------------------------------------------------------------- one chunk

    async def _add_alone(self, chunk: Sequence[Newcomer]) -> list[Added]:
        jids = await self._ids(len(chunk))
        ops = [op for jid, each in zip(jids, chunk, strict=True) for op in self._facts(jid, "", each)]
        await certain(self.session, ops, lambda: self._filled(jids[0]))
        return [Added(jid, created=True) for jid in jids]

    async def _add_to(
        self, bid: str, chunk: Sequence[Newcomer], lock: Lock | None, *, looking: bool
    ) -> list[Added]:
        while True:
            if lock and not await self.locks.holds(lock):
                raise LockLost
            entry = await self.reader.batch(bid, whole=False) if is_item(bid, BID) else None
            if entry is None:
                raise UnknownBatch(self.queue, bid)
            known = await self._known(bid, chunk) if looking and entry.expansion.rows else {}
            fresh = _first_of_each(each for each in chunk if each.order.id not in known)
            if fresh and entry.batch.sealed:
                raise BatchSealed
            if fresh and not await self._fill(entry, fresh, known):
                await self.session.sync(self.tree.batch(bid))
                looking = True
                continue
            new = {each.order.id for each in fresh}
            answer = []
            for each in chunk:
                answer.append(Added(known[each.order.id], created=each.order.id in new))
                new.discard(each.order.id)
            return answer

    async def _known(self, bid: str, chunk: Sequence[Newcomer]) -> dict[str, str]:
        ids = list(dict.fromkeys(each.order.id for each in chunk))
        nodes = await self.session.get_all([self.tree.key(bid, id) for id in ids])
        return {id: node.data.decode() for id, node in zip(ids, nodes, strict=True) if node}

    async def _fill(self, entry: BatchEntry, fresh: Sequence[Newcomer], known: dict[str, str]) -> bool:
        """Make a chunk's jobs and note their ids; False if somebody else changed the batch first."""
        jids = await self._ids(len(fresh))
        ops = [*self._buckets(entry), *self._progress(entry, len(fresh))]
        for jid, each in zip(jids, fresh, strict=True):
            ops += self._facts(jid, entry.id, each)
            ops.append(Create(self.tree.bucket(entry.id, PENDING, jid)))
            ops.append(Create(self.tree.key(entry.id, each.order.id), jid.encode()))
        try:
            await certain(self.session, ops, lambda: self._filled(jids[0]))
        except Refused:
            await self._drop(jids)
            return False
        known |= {each.order.id: jid for jid, each in zip(jids, fresh, strict=True)}
        return True

    def _buckets(self, entry: BatchEntry) -> Iterator[Op]:
        """Make what a layout has only once there are jobs, and a batch of another program not at all."""
        if not entry.bucketed:
            yield Create(self.tree.batch(entry.id, "states"))
            for bucket in self.tree.layout.made_buckets:
                yield Create(self.tree.batch(entry.id, "states", bucket))
        if not entry.ours:
            yield Create(self.tree.batch(entry.id, "keys"))

    def _progress(self, entry: BatchEntry, more: int) -> Iterator[Op]:
        """Count the chunk; a batch with its first jobs is processing."""
        now, path = self.clock(), self.tree.batch(entry.id, "expansion")
        expansion = msgspec.structs.replace(
            entry.expansion, rows=entry.expansion.rows + more, modified_at=now, write=secrets.token_hex(16)
        )
        data = payloads.pack(expansion)
        yield Put(path, data, entry.expanded) if entry.ours else Create(path, data)
        if BatchState.PROCESSING in MOVES[entry.batch.state] and entry.batch.state is BatchState.PENDING:
            status = payloads.batch_status(self.tree.layout, BatchState.PROCESSING, now)
            yield Put(self.tree.batch(entry.id, "status"), payloads.pack(status), entry.status)

    def _facts(self, jid: str, bid: str, newcomer: Newcomer) -> list[Op]:
        """Give all nodes of a new job, and its index entry."""
        order, now, layout = newcomer.order, self.clock(), self.tree.layout
        submitter = str(order.submitter)
        facts = {
            "bid": bid.encode(),
            "configuration": payloads.configuration(layout, bid, submitter, order.profile, order.body),
            "status": payloads.pack(
                payloads.job_status(layout, newcomer.state, last=newcomer.last, retries=0, at=now)
            ),
            "place": payloads.pack(self._standing(newcomer, now)),
            "priority": b"%d" % order.priority,
            "space_needed": b"0",
            "identifiers": payloads.NO_IDENTIFIERS,
        }
        ops: list[Op] = [Create(self.tree.job(jid, fact), data) for fact, data in facts.items()]
        return [*ops, Create(self.tree.entry(newcomer.state, order.priority, jid))]

    @staticmethod
    def _standing(newcomer: Newcomer, now: int) -> Standing:
        order = newcomer.order
        standing = Standing(
            id=order.id,
            version=newcomer.version,
            level=order.level,
            elastic=order.elastic,
            duration=order.duration,
            need=order.need,
            band=int(order.band),
            release=newcomer.release,
            arrival=newcomer.arrival,
            created_at=newcomer.created_at or now,
            modified_at=now,
            expires_at=order.expires_at,
            abandon=order.abandon,
            exempt=order.exempt,
            label=order.label,
            write=secrets.token_hex(16),
        )
        return payloads.stand_body(msgspec.structs.replace(standing, **newcomer.facts), order.body)

    # ---------------------------------------------------------------- ids

    async def _ids(self, count: int) -> list[str]:
        """Make empty items and give their ids; what a lost connection leaves empty is an orphan."""
        ops = [Create(f"{self.tree.jobs}/{JID}", sequence=True)] * count
        return item_names(await certain(self.session, ops, never))

    async def _filled(self, jid: str) -> bool:
        return await self.session.stat(self.tree.job(jid, "status")) is not None

    async def _drop(self, jids: Sequence[str]) -> None:
        """Delete items that stayed empty."""
        try:
            await self.session.multi([Delete(self.tree.job(jid)) for jid in jids])
        except (Refused, OutcomeUnknown):
            return  # they are orphans then, and harmless


def _chunks(newcomers: Sequence[Newcomer]) -> Iterator[list[Newcomer]]:
    chunk: list[Newcomer] = []
    size = 0
    for each in newcomers:
        weight = 2 * len(each.order.body)
        if chunk and (len(chunk) == CHUNK or size + weight > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(each)
        size += weight
    if chunk:
        yield chunk


def _first_of_each(newcomers: Iterator[Newcomer]) -> list[Newcomer]:
    """Keep one of those with the same key."""
    return list({each.order.id: each for each in reversed(list(newcomers))}.values())[::-1]
