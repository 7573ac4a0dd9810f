"""A worker: it holds slots on the floor, runs what the store hands it, and gives back what it cannot finish.

The store pushes jobs into the worker's inbox, and answers each finish with what comes next, so a worker never
asks for work. Its lease is the truth: whatever it did not renew in time is lost, and it ends that work.

Messages may be lost with a connection, come late or come twice. Renewing settles it: it names what is held,
and its answer tells of every other job that is this worker's. So a start in the inbox that is older than the
last renewal is either known already or no longer ours, and nothing starts while the lease may be over.
"""

import asyncio
import os
import secrets
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import structlog

from maitred.core.floor import MOST_SLOTS
from maitred.core.job import Finish, Lease, Moment, Shift, Start, Stop
from maitred.core.settings import SECOND, Settings
from maitred.errors import ConfigError, StoreError
from maitred.service.handlers import Handlers
from maitred.store.port import Store
from maitred.worker.outcome import Outcome, raised
from maitred.worker.runs import Runner

BATCH = 64
PARK = 5.0
SAFETY_NET = 1.0
RETRY_FIRST, RETRY_LONGEST = 0.05, 2.0
LEAVE_PATIENCE = 1.0
STOP_PATIENCE = 5.0

_log = structlog.get_logger()
T = TypeVar("T")


def worker_name() -> str:
    """Make a name that no other worker has."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


class Worker:
    """Runs the jobs of one queue, up to `slots` at once. `run` it; `stop` makes it end in order."""

    def __init__(
        self,
        store: Store,
        handlers: Handlers,
        slots: int,
        *,
        settings: Settings | None = None,
        name: str = "",
    ) -> None:
        if not 0 <= slots <= MOST_SLOTS:
            raise ConfigError(f"A worker has from 0 to {MOST_SLOTS} slots; run more workers for more.")
        self.name = name or worker_name()
        self._store, self._handlers, self._slots = store, handlers, slots
        self._given = settings
        self._running: dict[Lease, asyncio.Task[Outcome | None]] = {}
        self._unsaid: dict[Lease, Finish] = {}
        self._saying: dict[Lease, Finish] = {}
        self._returning: dict[Lease, asyncio.Task[Outcome | None] | None] = {}
        self._past: dict[Lease, int] = {}
        self._told = 0
        self._stuck = 0
        self._stopping = asyncio.Event()
        self._flush_due = False
        self._calls: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()
        self._renewed = 0.0
        self._doubtful = asyncio.Event()
        self._out_of_reach = False
        self._alarm = asyncio.Event()
        self._alarm_at = float("inf")
        self._timer: asyncio.TimerHandle | None = None

    def stop(self) -> None:
        """Take no more; finish or give back what runs, and end."""
        self._stopping.set()

    async def run(self) -> None:
        """Work until stopped. Raises what the store raises at the start; later it waits for the store."""
        self._loop = asyncio.get_running_loop()
        self._settings = self._given or (await self._store.status()).settings
        self._lease = self._settings.lease / SECOND
        self._runner = Runner(self._handlers, self._settings, self._note_stuck)
        await self._join()
        loops = [
            asyncio.create_task(loop, name=f"maitred-{role}")
            for role, loop in (
                ("inbox", self._read_inbox()),
                ("lease", self._keep_lease()),
                ("clock", self._keep_time()),
            )
        ]
        stopped = asyncio.create_task(self._stopping.wait())
        try:
            ended, _ = await asyncio.wait([stopped, *loops], return_when=asyncio.FIRST_COMPLETED)
            self._stopping.set()
            await self._drain()
            for task in ended:
                task.result()
        finally:
            if self._timer:
                self._timer.cancel()
            rest: list[asyncio.Task[Any]] = [stopped, *loops, *self._running.values(), *self._calls]
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)
            self._runner.close()

    # ---------------------------------------------------------------- what the store says

    async def _join(self) -> None:
        if self._stopping.is_set() and self._renewed:
            return
        begun = time.monotonic()
        shift = await self._store.join(self.name, max(0, self._slots - self._stuck), self._runner.serves)
        self._renewed = begun
        self._heed(shift)

    def _heed(self, shift: Shift) -> None:
        """Take in what a verb answered: work that was lost, work to start, when to look again."""
        self._set_alarm(shift.moment)
        for lease in shift.lost:
            self._end(lease)
        for start in shift.starts:
            self._begin(start)
        if not shift.known:
            self._doubtful.set()

    async def _read_inbox(self) -> None:
        """Park on the inbox; the store pushes into it what this worker is to start or stop."""
        while True:
            for message in await self._patiently(lambda: self._store.park(self.name, PARK)):
                if isinstance(message, Start):
                    if message.start >= self._told:
                        self._begin(message)
                elif isinstance(message, Stop):
                    self._heed_stop(message.lease)
                else:
                    self._alarm.set()

    def _heed_stop(self, lease: Lease) -> None:
        """End work, or see to it that it never begins if its start is still on the way by another road."""
        if lease in self._running:
            self._end(lease)
        elif lease not in self._past:
            self._past[lease] = self._told
            self._tell(Finish(lease, *_STOPPED))

    async def _keep_lease(self) -> None:
        """Renew three times per lease, or at once in doubt; when that fails for too long, all is lost."""
        pause = RETRY_FIRST
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, self._renewed + self._lease / 3 - time.monotonic())):
                    await self._doubtful.wait()
            self._doubtful.clear()
            begun = time.monotonic()
            held = [*self._running, *self._unsaid, *self._saying, *self._still_ending()]
            try:
                async with asyncio.timeout(self._lease / 3):
                    shift = await self._store.renew(self.name, held)
            except (StoreError, TimeoutError) as error:
                self._note_out_of_reach(error)
                if time.monotonic() > self._renewed + self._lease:
                    self._lose_all("the store was out of reach for longer than the lease")
                await asyncio.sleep(pause)
                pause = min(pause * 2, RETRY_LONGEST, self._lease / 6)
                continue
            pause = RETRY_FIRST
            self._note_within_reach()
            self._past = {lease: when for lease, when in self._past.items() if when >= self._told}
            self._told = shift.moment.now
            if shift.known:
                self._renewed = begun
                self._return_given_up(shift)
                self._heed(shift)
            else:
                self._lose_all("the store gave this worker up")
                self._returning.clear()
                if self._stopping.is_set():
                    return
                await self._patiently(self._join)

    async def _keep_time(self) -> None:
        """Tick at the moment that the store named, and once a second as a safety net."""
        while True:
            await self._alarm.wait()
            self._alarm.clear()
            moment = await self._patiently(self._store.tick)
            self._alarm_at = float("inf")
            self._set_alarm(moment)

    def _set_alarm(self, moment: Moment) -> None:
        """Bring the alarm forward to this moment; one that comes too early does no harm."""
        at = self._loop.time() + moment.wait(SAFETY_NET)
        if at < self._alarm_at:
            self._alarm_at = at
            if self._timer:
                self._timer.cancel()
            self._timer = self._loop.call_at(at, self._alarm.set)

    # ---------------------------------------------------------------- what runs

    def _begin(self, start: Start) -> None:
        """Start a job, unless it is one that was delivered before."""
        lease = start.lease
        if lease in self._running or lease in self._past or lease in self._returning:
            return
        self._past[lease] = start.start
        if self._stopping.is_set():
            self._returning[lease] = None
            self._spawn(self._hand_back([lease]))
            return
        task = self._running[lease] = self._loop.create_task(self._carry_out(start))
        task.add_done_callback(partial(self._over, lease))

    async def _carry_out(self, start: Start) -> Outcome | None:
        """Run a job; None if the lease may be over, as after a long sleep of the whole process."""
        if time.monotonic() > self._renewed + self._lease:
            return None
        return await self._runner.run(start)

    def _over(self, lease: Lease, task: "asyncio.Task[Outcome | None]") -> None:
        """Tell what became of a run that ended by itself or was ended; nothing of one that was given up."""
        outcome = _outcome(task)
        if self._running.pop(lease, None) is None:
            if lease in self._returning:
                self._doubtful.set()
            return
        if not self._running:
            self._idle.set()
        if outcome is None:
            self._past.pop(lease, None)
            self._doubtful.set()
        else:
            self._tell(Finish(lease, *outcome))

    def _end(self, lease: Lease) -> None:
        """End work that is no longer this worker's; its end is told to the store, which knows what to do."""
        task = self._running.get(lease)
        if task:
            _cancel(task)

    def _lose_all(self, why: str) -> None:
        if self._running:
            _log.error("leases lost", worker=self.name, jobs=len(self._running), why=why)
        self._give_up()

    def _give_up(self) -> None:
        """End all work without a result, to hand it back when it has ended if it is still ours then."""
        for task in self._running.values():
            _cancel(task)
        self._returning |= self._running
        self._running.clear()
        self._idle.set()

    def _still_ending(self) -> list[Lease]:
        return [lease for lease, task in self._returning.items() if task and not task.done()]

    def _note_stuck(self, change: int) -> None:
        """Take the slot of a thread that cannot be stopped off the floor, or put it back."""
        self._stuck += change
        if not self._stopping.is_set():
            self._spawn(self._patiently(self._join))

    # ---------------------------------------------------------------- what is told to the store

    def _tell(self, finish: Finish) -> None:
        self._unsaid[finish.lease] = finish
        if len(self._unsaid) >= BATCH:
            self._flush()
        elif not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_due = False
        while self._unsaid:
            batch = dict(list(self._unsaid.items())[:BATCH])
            for lease in batch:
                del self._unsaid[lease]
            self._saying |= batch
            self._spawn(self._say(batch))

    async def _say(self, batch: dict[Lease, Finish]) -> None:
        """Tell the store what ended, until it has heard; what comes next starts at once."""
        results = list(batch.values())
        shift = await self._patiently(lambda: self._store.finish(self.name, results))
        for lease in batch:
            self._saying.pop(lease, None)
        self._heed(shift)

    def _return_given_up(self, renewed: Shift) -> None:
        """Hand back what was given up and has ended, and is still this worker's after all."""
        ending = self._still_ending()
        missed = [start.lease for start in renewed.starts if start.lease in self._returning]
        self._returning = {lease: self._returning[lease] for lease in (*ending, *missed)}
        if back := [lease for lease in missed if lease not in ending]:
            self._spawn(self._hand_back(back))

    async def _hand_back(self, leases: list[Lease]) -> None:
        self._heed(await self._patiently(lambda: self._store.hand_back(self.name, leases)))
        for lease in leases:
            self._returning.pop(lease, None)

    def _spawn(self, call: "Awaitable[None]") -> None:
        task = asyncio.ensure_future(call)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call the store until it answers. An answer that was lost may have brought work: renewing tells."""
        pause = RETRY_FIRST
        while True:
            try:
                return await call()
            except StoreError as error:
                self._note_out_of_reach(error)
                self._doubtful.set()
                await asyncio.sleep(pause)
                pause = min(pause * 2, RETRY_LONGEST)

    def _note_out_of_reach(self, error: Exception) -> None:
        if not self._out_of_reach:
            _log.warning(
                "the store does not answer", worker=self.name, error=str(error) or "no answer in time"
            )
        self._out_of_reach = True

    def _note_within_reach(self) -> None:
        if self._out_of_reach:
            _log.info("the store answers again", worker=self.name)
        self._out_of_reach = False

    # ---------------------------------------------------------------- the end

    async def _drain(self) -> None:
        """Take no more, let work end until the grace is over, and hand back the rest."""
        grace = self._settings.grace / SECOND
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(LEAVE_PATIENCE):
                self._heed(await self._store.leave(self.name))
        self._idle.clear()
        if self._running:
            with suppress(TimeoutError):
                async with asyncio.timeout(grace):
                    await self._idle.wait()
        rest = list(self._running.values())
        self._give_up()
        if rest:
            patience = self._settings.kill_after / SECOND + STOP_PATIENCE
            _, deaf = await asyncio.wait(rest, timeout=patience)
            if deaf:
                _log.error("handlers do not heed their stop", worker=self.name, jobs=len(deaf))
        self._flush()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(LEAVE_PATIENCE, grace)):
                await asyncio.gather(*self._calls)
                await self._patiently(self._say_farewell)

    async def _say_farewell(self) -> None:
        """Leave for good, and give back all that the store still counts as this worker's."""
        if (await self._store.leave(self.name)).known:
            left = await self._store.renew(self.name, [])
            if left.starts:
                await self._store.hand_back(self.name, [start.lease for start in left.starts])


_STOPPED = Outcome("stopped", "it was stopped")


def _cancel(task: "asyncio.Task[Outcome | None]") -> None:
    """Ask a run to stop, once: a second time would break into its tidying up."""
    if not task.cancelling():
        task.cancel()


def _outcome(task: "asyncio.Task[Outcome | None]") -> Outcome | None:
    if task.cancelled():
        return _STOPPED if task.cancelling() else raised(asyncio.CancelledError("by the handler itself"))
    error = task.exception()
    return raised(error) if error else task.result()
