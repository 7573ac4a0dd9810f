"""Runs of one process: a start is leased in the line first, then taken up in the tree, and then given.

Taking up is one step: the job's ephemeral lock is made and its state moves, if its version is the one that
was read. What is refused there goes back to the line unspent. A run ends in the tree first, by its token,
with its lock: whoever lost either ends nothing. When the session is lost all locks are gone: the work is
stopped, and its leases are handed back.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass

import msgspec
import structlog

from maitred.core.job import Finish, Lease, Message, Shift, Start, Stop, TakenUp
from maitred.core.stages import HELD
from maitred.errors import Conflict, LockLost, NotFound, Overtaken, SessionLost, StoreError
from maitred.store.zookeeper.bridge import Bridge
from maitred.store.zookeeper.locks import HOST, Claim
from maitred.store.zookeeper.records import JobEntry
from maitred.store.zookeeper.restoring import job_of
from maitred.store.zookeeper.session import Check, Create, Delete, Op
from maitred.store.zookeeper.tree import ENDED

SESSION_LOST = "session-lost"
LOCK_PATIENCE = 0.5

_log = structlog.get_logger()


@dataclass(slots=True)
class Run:
    """A run that this process took up: the job as it was then, and how much of its end was said.

    `forsaken` is one whose lock went with its session, `absent` one that its worker did not name.
    """

    worker: str
    start: Start
    entry: JobEntry
    noted: bool = False
    forsaken: bool = False
    absent: bool = False
    told: Finish | None = None

    @property
    def jid(self) -> str:
        """The job's id in the tree."""
        return self.entry.jid


class Refusal(Exception):
    """The tree does not let a run begin: the job is elsewhere by now."""


class Runs:
    """What the workers of this process run, by lease, and the locks that go with it."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self.taken: dict[Lease, Run] = {}
        self.locked: dict[str, int] = {}
        self.inboxes: dict[str, list[Message]] = {}
        self.rung: dict[str, asyncio.Event] = {}
        self._trying: dict[Lease, asyncio.Task[Start | None]] = {}
        self._errands: set[asyncio.Task[None]] = set()
        bridge.session.on_lost(self._forsake)

    async def close(self) -> None:
        """End what is under way."""
        tasks = [*self._trying.values(), *self._errands]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # ---------------------------------------------------------------- beginning

    async def take_up(
        self, worker: str, starts: Sequence[Start], patience: float | None = None
    ) -> list[Start]:
        """Take starts up in the tree; give those that may begin.

        One that takes longer than `patience` is given by a later call that names it again, as a renewal does.
        """
        tasks = {start.lease: self._try(worker, start) for start in starts if start.ledger}
        if tasks:
            await asyncio.wait(tasks.values(), timeout=patience)
        given = []
        for start in starts:
            task = tasks.get(start.lease)
            if task is None:
                given.append(start)
            elif task.done() and not task.cancelled() and (taken := task.result()):
                given.append(start._replace(status=taken.status, body=taken.body, data=taken.data))
        return given

    def _try(self, worker: str, start: Start) -> asyncio.Task[Start | None]:
        task = self._trying.get(start.lease)
        if task is None:
            task = asyncio.ensure_future(self._take_up(worker, start))
            self._trying[start.lease] = task
            task.add_done_callback(lambda _: self._trying.pop(start.lease, None))
        return task

    async def _take_up(self, worker: str, start: Start) -> Start | None:
        """Take one start up; None if it cannot begin, or not yet."""
        bridge = self.bridge
        try:
            run = self.taken.get(start.lease)
            if run is None:
                run = await self._begin(worker, start)
            if run.forsaken:
                return None
            if not run.noted:
                if await bridge.line.note_status(worker, [TakenUp(start.lease, run.entry.mark)]):
                    await self.let_go([run])
                    return None
                run.noted = True
        except Refusal:
            await self._give_away(worker, start)
            return None
        except (StoreError, Conflict) as error:
            lease = f"{start.lease.record}.{start.attempt}"
            about = {"queue": bridge.line.queue, "job": start.id, "lease": lease, "ledger": start.ledger}
            _log.debug("a start could not be taken up yet", **about, error=str(error))
            return None
        return run.start._replace(status=run.entry.mark)

    async def _begin(self, worker: str, start: Start) -> Run:
        """Lock a job and move it to its stage; Refusal, or LockLost if somebody else has it for now."""
        bridge, jid = self.bridge, start.ledger
        path = bridge.lock(jid)
        waited = False
        while True:
            [entry] = await bridge.read([jid])
            if entry is None or not self._fits(entry, start):
                raise Refusal
            mine = self.locked.get(jid) == bridge.session.id
            claim = msgspec.json.encode(Claim(worker, HOST, bridge.ledger.clock(), start.lease.token.hex()))
            ops: list[Op] = [Check(path, 0) if mine else Create(path, claim, ephemeral=True)]
            session = bridge.session.id
            try:
                new = await bridge.jobs.start(
                    entry, start.lease.token, start.attempt, freed=entry.mark == start.status, also=ops
                )
            except Overtaken:
                await bridge.session.sync(path)
                continue
            except LockLost:
                if mine:
                    self.locked.pop(jid, None)
                elif waited:
                    raise
                else:
                    waited = True
                    await self._freed(jid)
                continue
            if bridge.session.id != session:
                raise SessionLost
            job = job_of(new, bridge.settings)
            if entry.mark != start.status:
                start = start._replace(body=job.body, data=job.data, identifiers=job.identifiers)
            self.locked[jid] = session
            run = self.taken[start.lease] = Run(worker, start, new)
            return run

    def _fits(self, entry: JobEntry, start: Start) -> bool:
        """Tell whether the tree has a job where the line starts it."""
        settings = self.bridge.settings
        if entry.state in ENDED or (entry.state == HELD and entry.mark != start.status):
            return False
        return not settings.staged or settings.need(self.bridge.stage_of(entry)) == start.need

    async def _freed(self, jid: str) -> None:
        """Wait until a job's lock is given up, for a short while."""
        changed = asyncio.Event()
        names = await self.bridge.session.children(self.bridge.tree.job(jid), watch=changed.set)
        if names and "lock" in names:
            try:
                async with asyncio.timeout(LOCK_PATIENCE):
                    await changed.wait()
            except TimeoutError:
                return

    async def _give_away(self, worker: str, start: Start) -> None:
        """Let the line know where a job is by now, and hand the lease back unspent."""
        bridge = self.bridge
        [entry] = await bridge.read([start.ledger])
        if entry is None:
            await bridge.drop(start.ledger, start.id)
        else:
            await bridge.bring([start.ledger], even_run=True)
        shift = await bridge.line.hand_back(worker, [start.lease])
        self.give_later(worker, shift.starts)

    def give_later(self, worker: str, starts: Sequence[Start]) -> None:
        """Take starts up beside what goes on, and put them into the worker's inbox."""

        async def errand() -> None:
            for start in await self.take_up(worker, starts):
                self.send(worker, start)

        if starts:
            self.errand(errand())

    # ---------------------------------------------------------------- what the worker is told

    def send(self, worker: str, message: Message) -> None:
        """Put a message into a worker's inbox here."""
        self.inboxes.setdefault(worker, []).append(message)
        self.rung.setdefault(worker, asyncio.Event()).set()

    def errand(self, work: Awaitable[None]) -> None:
        """Do something beside what goes on."""
        task = asyncio.ensure_future(_unharmed(work))
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    def _forsake(self) -> None:
        """Stop everything: the session is lost, and its locks with it."""
        self.locked.clear()
        for run in self.taken.values():
            if not run.forsaken and run.told is None:
                run.forsaken = True
                self.send(run.worker, Stop(run.start.lease, SESSION_LOST))

    def forsaken(self, leases: Iterable[Lease]) -> list[Lease]:
        """Name those of the leases whose locks are lost."""
        return [lease for lease in leases if (run := self.taken.get(lease)) and run.forsaken]

    # ---------------------------------------------------------------- giving up

    async def step_back(self, run: Run) -> None:
        """Give a run up in the tree, with its lock; the line hears which version that made."""
        bridge, lease = self.bridge, run.start.lease
        mine = self.locked.get(run.jid) == bridge.session.id and not run.forsaken
        ops: list[Op] = [Delete(bridge.lock(run.jid))] if mine else []
        self.taken.pop(lease, None)
        try:
            entry = await bridge.jobs.step_back(
                run.jid, lease.token, also=ops, attempt=max(0, run.start.attempt - 1)
            )
        except (Conflict, NotFound):
            await self.unlock(run.jid)
            return
        if mine:
            self.locked.pop(run.jid, None)
        await bridge.line.said(lease.record, "", entry.mark)

    async def let_go(self, runs: Sequence[Run]) -> None:
        """Give runs up that the line does not count as ours any more, and let it know where the jobs are."""
        for run in runs:
            await self.step_back(run)
        await self.bridge.bring([run.jid for run in runs])

    async def unlock(self, jid: str) -> None:
        """Give a job's lock up, if it is ours and no run here needs it."""
        bridge = self.bridge
        if self.locked.get(jid) != bridge.session.id or any(run.jid == jid for run in self.taken.values()):
            return
        self.locked.pop(jid, None)
        node = await bridge.session.stat(bridge.lock(jid))
        if node is not None and node.owner == bridge.session.id:
            await bridge.ledger.locks.drop(bridge.lock(jid))

    def abandon(self, worker: str) -> None:
        """Give all runs of a worker up that the line has forgotten, when their work had time to stop."""
        runs = [run for run in self.taken.values() if run.worker == worker]

        async def errand() -> None:
            await asyncio.sleep(self.bridge.settings.kill_after / 1_000_000)
            await self.let_go([run for run in runs if self.taken.get(run.start.lease) is run])

        if runs:
            self.errand(errand())

    def gather_strays(self, worker: str, held: Sequence[Lease], shift: Shift) -> None:
        """Give up what neither the worker nor the line has named in two renewals."""
        named = {*held, *(start.lease for start in shift.starts), *self._trying}
        strays = []
        for lease, run in self.taken.items():
            if run.worker != worker:
                continue
            if lease not in named and run.absent:
                strays.append(run)
            run.absent = lease not in named
        if strays:
            self.errand(self.let_go(strays))


async def _unharmed(work: Awaitable[None]) -> None:
    """Do an errand; the next renewal sees to what a lost connection leaves."""
    try:
        await work
    except (StoreError, Conflict, NotFound) as error:
        _log.warning("what was given up could not be told", error=str(error))
