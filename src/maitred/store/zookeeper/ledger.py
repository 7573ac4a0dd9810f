"""The ledger of one queue in ZooKeeper: the session, the tree, and the parts that change it.

`Ledger.open` connects and makes the fixed nodes of the tree. Jobs come in by `intake`, change by `jobs`, and
belong to `batches`; `removal` deletes. Holds of many are flags.
"""

import time
from collections.abc import AsyncIterator, Callable
from typing import Literal

import msgspec

from maitred.core.stages import INGEST
from maitred.errors import NotFound, UnknownJob
from maitred.store.zookeeper.batches import Batches
from maitred.store.zookeeper.intake import Intake
from maitred.store.zookeeper.jobs import Jobs
from maitred.store.zookeeper.locks import Lock, Locks
from maitred.store.zookeeper.payloads import Reason, pack
from maitred.store.zookeeper.pending import Changes, Pending
from maitred.store.zookeeper.records import READ_TOGETHER, JobEntry, Reader
from maitred.store.zookeeper.removal import Removal
from maitred.store.zookeeper.session import Create, Delete, Put, Refused, Session, certain, never
from maitred.store.zookeeper.tree import ENDED, LAYOUTS, Address, Tree, read_entry, unescape

HELD_KINDS = ("submitter", "profile")


def _wall_clock() -> int:
    """Give the time in microseconds since 1970."""
    return time.time_ns() // 1_000


class Ledger:
    """One queue's batches and jobs in a tree of ZooKeeper."""

    def __init__(
        self,
        session: Session,
        root: str,
        *,
        queue: str = "default",
        layout: Literal["seed", "mrt-zk"] = "seed",
        stages: tuple[str, ...] = INGEST,
        clock: Callable[[], int] = _wall_clock,
    ) -> None:
        self.session, self.queue, self.stages, self.clock = session, queue, stages, clock
        self.tree = Tree(root, LAYOUTS[layout])
        self.reader = Reader(session, self.tree, stages)
        self.locks = Locks(session)
        self.jobs = Jobs(queue, session, self.reader, clock)
        self.intake = Intake(queue, session, self.reader, clock)
        self.batches = Batches(queue, session, self.reader, clock)
        self.removal = Removal(self.batches, clock)

    @classmethod
    def at(
        cls,
        url: str,
        *,
        queue: str = "default",
        layout: Literal["seed", "mrt-zk"] = "seed",
        stages: tuple[str, ...] = INGEST,
        timeout: float = 10.0,
        clock: Callable[[], int] | None = None,
    ) -> "Ledger":
        """Give the ledger at `zookeeper://host:port,…/root`, not connected yet; ConfigError."""
        address = Address.read(url)
        session = Session(address.hosts, timeout=timeout)
        return cls(
            session, address.root, queue=queue, layout=layout, stages=stages, clock=clock or _wall_clock
        )

    async def open(self) -> None:
        """Connect, and make the fixed nodes of the tree where they are missing; StoreUnavailable."""
        await self.session.open()
        try:
            await self._make_fixed()
        except BaseException:
            # Whoever cannot open it does not close it either.
            await self.session.close()
            raise

    async def _make_fixed(self) -> None:
        fixed = [self.tree.batches, self.tree.jobs, self.tree.uuids, self.tree.states, self.tree.holds]
        fixed += [f"{self.tree.holds}/{kind}" for kind in HELD_KINDS]
        fixed += [self.tree.state(state) for state in self.tree.index_states(self.stages)]
        roots = self.tree.root.split("/")
        for path in ["/".join(roots[: depth + 1]) for depth in range(1, len(roots))] + fixed:
            await self._ensure(path)

    async def close(self) -> None:
        """End the session, and with it its locks."""
        await self.session.close()

    async def _ensure(self, path: str, data: bytes = b"") -> None:
        """Make a node, or give it this data."""
        try:
            await certain(self.session, [Create(path, data)], never)
        except Refused as refused:
            if refused.why != "exists":
                raise
            if data:
                await certain(self.session, [Put(path, data)], never)

    # ---------------------------------------------------------------- locks on jobs

    async def lock_job(self, jid: str, owner: str, token: bytes) -> Lock | None:
        """Lock a job; None if somebody has it, UnknownJob if there is none."""
        try:
            return await self.locks.take(self.tree.job(jid), owner, token, self.clock())
        except NotFound:
            raise UnknownJob(self.queue, jid) from None

    # ---------------------------------------------------------------- holds of many

    async def hold(self, reason: Reason) -> None:
        """Hold a submitter or a profile: a flag that its jobs meet before their next stage."""
        await self._ensure(self.tree.hold(reason.kind, reason.name), pack(reason))

    async def unhold(self, kind: str, name: str) -> bool:
        """Take such a flag away; False if there was none."""
        path = self.tree.hold(kind, name)

        async def gone() -> bool:
            return await self.session.stat(path) is None

        try:
            await certain(self.session, [Delete(path)], gone)
        except Refused:
            return False
        return True

    async def holds(self) -> list[Reason]:
        """Give all such flags."""
        found: list[Reason] = []
        for kind in HELD_KINDS:
            for name in sorted(await self.session.children(f"{self.tree.holds}/{kind}") or []):
                node = await self.session.get(f"{self.tree.holds}/{kind}/{name}")
                if node is not None:
                    found.append(_reason(node.data, kind, unescape(name)))
        return found

    # ---------------------------------------------------------------- lists

    def pending(self, state: str = "pending") -> Pending:
        """Give a line of the jobs in a state, in the order of priority and age."""
        return Pending(self.session, self.tree, state)

    async def unended(self) -> AsyncIterator[JobEntry]:
        """Give every job that has not ended, state by state and each in its order, for whoever rebuilds.

        One that moves meanwhile may be given twice, or be seen by `changes` only; one that is spoilt is left
        out.
        """
        for state in self.tree.index_states(self.stages):
            if state in ENDED:
                continue
            names = sorted(await self.session.children(self.tree.state(state)) or [])
            jids = [jid for name in names if (jid := read_entry(name))]
            for begin in range(0, len(jids), READ_TOGETHER):
                for job in await self.reader.jobs_or_faults(jids[begin : begin + READ_TOGETHER]):
                    if isinstance(job, JobEntry) and job.state not in ENDED:
                        yield job

    def changes(self) -> Changes:
        """Give the notice of jobs that move, among those that have not ended."""
        states = [state for state in self.tree.index_states(self.stages) if state not in ENDED]
        return Changes(self.session, self.tree, states)


def _reason(data: bytes, kind: str, name: str) -> Reason:
    """Read a flag; one that another program set is empty."""
    try:
        return msgspec.json.decode(data, type=Reason)
    except msgspec.MsgspecError:
        return Reason(kind, name)
