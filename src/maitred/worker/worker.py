"""A worker: it holds slots on the floor, runs what the store hands it, and gives back what it cannot finish.

The store pushes jobs into the worker's inbox, and answers each finish with what comes next, so a worker never
asks for work. Its lease is the truth: whatever it did not renew in time is lost, and it ends that work.

It is made of one small object per role. This one joins, passes on what the store answers, and ends in order.
Nothing starts while the lease may be over.
"""

import asyncio
import os
import secrets
import socket
import time
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import structlog

from maitred.core.floor import MOST_SLOTS
from maitred.core.job import Lease, Shift
from maitred.core.settings import SECOND, Settings
from maitred.errors import ConfigError, StoreError, StoreUnavailable
from maitred.service.handlers import Handlers
from maitred.service.health import Health
from maitred.service.host import Host, this_host
from maitred.store.port import Store
from maitred.worker.in_hand import InHand
from maitred.worker.inbox import Inbox
from maitred.worker.lease_keeper import LeaseKeeper
from maitred.worker.outcome import Outcome
from maitred.worker.reach import Reach
from maitred.worker.reports import Reports
from maitred.worker.run import Run
from maitred.worker.runner import Runner, check_stages
from maitred.worker.store_clock import StoreClock
from maitred.worker.timekeeper import Timekeeper
from maitred.worker.voice import Voice

LEAVE_PATIENCE = 1.0
STOP_PATIENCE = 5.0

_log = structlog.get_logger()


def worker_name() -> str:
    """Make a name that no other worker has."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


class Worker:
    """Runs the jobs of one queue, up to `slots` at once. `run` it; `stop` makes it end in order.

    It looks at the queue's settings with each renewal, so a change holds for what starts a little later.
    """

    _settings: Settings
    _runner: Runner
    _in_hand: InHand
    _lease: LeaseKeeper

    def __init__(
        self,
        store: Store,
        handlers: Handlers,
        slots: int,
        *,
        name: str = "",
        host: Host | None = None,
        visible: Sequence[str] = (),
    ) -> None:
        if not 0 <= slots <= MOST_SLOTS:
            raise ConfigError(f"A worker has from 0 to {MOST_SLOTS} slots; run more workers for more.")
        self.name = name or worker_name()
        self._store, self._handlers, self._slots = store, handlers, slots
        self._host, self._visible = host, visible
        self._stuck = 0
        self._joined = False
        self._stopping, self._hurried = asyncio.Event(), asyncio.Event()
        self._reach = Reach(self.name)
        self._clock = StoreClock()
        self._timekeeper = Timekeeper(store, self._reach, self._clock)
        self._reports = Reports(store, self.name, self._reach, self._heed)

    @property
    def about(self) -> bytes:
        """What operators are told of this worker, as JSON; known once it has entered."""
        return msgspec.json.encode({"sandbox": self._runner.sandbox.enforces})

    def stop(self) -> None:
        """Take no more; finish or give back what runs, and end."""
        self._stopping.set()

    def hurry(self) -> None:
        """Stop, without waiting for what runs: it is ended at once and given back."""
        self._stopping.set()
        self._hurried.set()

    def look_again(self) -> None:
        """Look at the queue's settings now."""
        self._reach.doubtful.set()

    def health(self) -> Health:
        """Tell how it is; may be called from another thread, also while the loop hangs."""
        at = self._reach.taking_at
        return Health(
            queue=self._store.queue,
            worker=self.name,
            slots=self._slots,
            busy=len(self._in_hand.runs) if self._joined else 0,
            stuck=self._stuck,
            stopping=self._stopping.is_set(),
            quiet=None if at is None else time.monotonic() - at,
            away_since=self._reach.away_since,
        )

    async def run(self) -> None:
        """Work until stopped. A store that is away is waited for, also at the start.

        Raises at the start what does not heal by waiting, as an unknown queue, a store of another version, or
        a function for a stage that the queue does not have.
        """
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            if await self._enter_unless(stopped):
                await self._work_until(stopped)
        finally:
            stopped.cancel()

    # ---------------------------------------------------------------- the beginning

    async def _enter_unless(self, stopped: "asyncio.Task[Any]") -> bool:
        """Enter, and tell whether that was possible before the worker was stopped."""
        entering = asyncio.create_task(self._enter())
        try:
            await asyncio.wait([entering, stopped], return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait([entering], timeout=LEAVE_PATIENCE)
            if entering.done():
                entering.result()
            return entering.done()
        finally:
            entering.cancel()
            await asyncio.gather(entering, return_exceptions=True)

    async def _enter(self) -> None:
        """Learn the queue's settings and join it for the first time."""
        self._settings = (await self._reach.patiently(self._store.status, StoreUnavailable)).settings
        check_stages(self._handlers, self._settings, self._store.queue)
        self._runner = Runner(
            self._handlers,
            self._settings,
            self._note_stuck,
            self._host or await asyncio.to_thread(this_host),
            self._visible,
            stopping=self._stopping,
        )
        self._in_hand = InHand(
            self._carry_out,
            self._clock,
            self._reach,
            self._reports,
            self._stopping,
            voice=Voice(
                self._store, self.name, self._reach, self._lose, limit=lambda: self._settings.output_limit
            ),
            time_limit=self._settings.time_limit,
        )
        self._lease = LeaseKeeper(
            self._settings.lease / SECOND,
            self._reach,
            self._renew,
            self._heed_renewal,
            self._in_hand.lose_all,
        )
        await self._reach.patiently(self._join, StoreUnavailable)

    async def _join(self) -> None:
        if self._stopping.is_set() and self._joined:
            return
        begun = time.monotonic()
        shift = await self._store.join(
            self.name, max(0, self._slots - self._stuck), self._runner.serves, self.about
        )
        self._learn(await self._store.settings())
        self._joined = True
        self._lease.begins(begun)
        self._reach.note_taking()
        self._heed(shift)

    def _learn(self, settings: Settings) -> None:
        """Take in the settings as they are after a lease was given."""
        old, self._settings = self._settings, settings
        self._lease.lasts(settings.lease / SECOND)
        if settings == old:
            return
        _log.info(
            "the queue's settings changed",
            worker=self.name,
            queue=self._store.queue,
            changed=settings.changed(old),
        )
        self._runner.heed(settings)
        if settings.stages != old.stages:
            self._serve_stages(settings)

    def _serve_stages(self, settings: Settings) -> None:
        """Offer what there is a function for; a queue's stages change only while it has no jobs."""
        try:
            check_stages(self._handlers, settings, self._store.queue)
        except ConfigError as error:
            _log.error("functions do not fit the stages", worker=self.name, error=str(error))
        self._reach.send(self._reach.patiently(self._join))

    async def _work_until(self, stopped: "asyncio.Task[Any]") -> None:
        inbox = Inbox(self._store, self.name, self._reach, self._in_hand, self._timekeeper)
        roles = {"inbox": inbox.run, "lease": self._lease.run, "clock": self._timekeeper.run}
        loops = [asyncio.create_task(role(), name=f"maitred-{name}") for name, role in roles.items()]
        try:
            ended, _ = await asyncio.wait([stopped, *loops], return_when=asyncio.FIRST_COMPLETED)
            self._stopping.set()
            await self._drain()
            for task in ended:
                task.result()
        finally:
            self._timekeeper.close()
            self._in_hand.close()
            runs = [run.task for run in self._in_hand.runs.values()]
            rest: list[asyncio.Task[Any]] = [*loops, *runs, *self._reach.errands]
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)
            self._runner.close()

    # ---------------------------------------------------------------- what the store says

    def _heed(self, shift: Shift) -> None:
        """Take in what a verb answered: work that was lost, work to start, when to look again."""
        if shift.starts:
            self._reach.note_taking()
        self._timekeeper.heed(shift.moment)
        for lease in shift.lost:
            self._in_hand.lose(lease)
        for start in shift.starts:
            self._in_hand.begin(start)
        if not shift.known:
            self._reach.doubtful.set()

    def _lose(self, lease: Lease) -> None:
        self._in_hand.lose(lease)

    async def _renew(self) -> Shift:
        shift = await self._store.renew(self.name, self._held())
        self._learn(await self._store.settings())
        return shift

    def _held(self) -> list[Lease]:
        """List what is ours, each job by its newest lease: the next stage may run before an end is heard."""
        newest: dict[int, Lease] = {}
        hand = self._in_hand
        for lease in (*hand.runs, *self._reports.leases, *hand.parting, *hand.ending()):
            newest.setdefault(lease.record, lease)
        return list(newest.values())

    async def _heed_renewal(self, shift: Shift) -> bool:
        """Take in the truth about what is ours; tell whether there is a lease to keep, maybe a new one."""
        self._in_hand.renewed(shift.moment.now)
        if shift.known:
            self._in_hand.hand_back_given_up(shift)
            self._heed(shift)
            return True
        self._in_hand.lose_all("the store gave this worker up")
        self._in_hand.forget_given_up()
        if self._stopping.is_set():
            return False
        await self._reach.patiently(self._join)
        return True

    # ---------------------------------------------------------------- what runs

    async def _carry_out(self, run: Run) -> Outcome | None:
        """Run a job; None if the lease may be over."""
        if self._lease.over:
            return None
        return await self._runner.run(run)

    def _note_stuck(self, change: int) -> None:
        """Take the slot of a thread that cannot be stopped off the floor, or put it back."""
        self._stuck += change
        if not self._stopping.is_set():
            self._reach.send(self._reach.patiently(self._join))

    # ---------------------------------------------------------------- the end

    async def _drain(self) -> None:
        """Take no more, let work end until the grace ends or somebody is in a hurry, hand back the rest."""
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(LEAVE_PATIENCE):
                self._heed(await self._store.leave(self.name))
        grace = self._settings.grace / SECOND
        self._in_hand.idle.clear()
        if self._in_hand.runs:
            await self._give_time(self._in_hand.idle.wait(), grace)
        rest = [run.task for run in self._in_hand.runs.values()]
        self._in_hand.give_up()
        if rest:
            patience = self._settings.kill_after / SECOND + STOP_PATIENCE
            _, deaf = await asyncio.wait(rest, timeout=patience)
            if deaf:
                _log.error("handlers do not heed their stop", worker=self.name, jobs=len(deaf))
        self._reports.flush()
        await self._give_time(self._tell_the_rest(), max(LEAVE_PATIENCE, grace), LEAVE_PATIENCE)

    async def _give_time(
        self, work: Coroutine[Any, Any, object], patience: float, in_a_hurry: float = 0.0
    ) -> None:
        """Wait for something for a while, or for a shorter while once somebody is in a hurry."""
        task, hurried = asyncio.create_task(work), asyncio.create_task(self._hurried.wait())
        try:
            await asyncio.wait([task, hurried], timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            if hurried.done():
                await asyncio.wait([task], timeout=in_a_hurry)
            if task.done():
                task.result()
        finally:
            for each in (task, hurried):
                each.cancel()
            await asyncio.gather(task, hurried, return_exceptions=True)

    async def _tell_the_rest(self) -> None:
        while self._reach.errands:
            await asyncio.gather(*self._reach.errands)
        await self._reach.patiently(self._say_farewell)

    async def _say_farewell(self) -> None:
        """Leave for good, and give back all that the store still counts as this worker's."""
        if (await self._store.leave(self.name)).known:
            left = await self._store.renew(self.name, [])
            if left.starts:
                await self._store.hand_back(self.name, [start.lease for start in left.starts])
