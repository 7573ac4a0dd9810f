"""A worker: it holds slots on the floor, runs what the store hands it, and gives back what it cannot finish.

The store pushes jobs into the worker's inbox, and answers each finish with what comes next, so a worker never
asks for work. Its lease is the truth: whatever it did not renew in time is lost, and it ends that work.
"""

import asyncio
import os
import secrets
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import structlog

from maitred.core.job import Finish, Lease, Moment, Shift, Start, Stop
from maitred.core.settings import SECOND, Settings
from maitred.errors import StoreError
from maitred.service.handlers import Handlers
from maitred.store.port import Store
from maitred.worker.outcome import Outcome
from maitred.worker.runs import Runner

BATCH = 64
PARK = 5.0
SAFETY_NET = 1.0
RETRY_FIRST, RETRY_LONGEST = 0.05, 2.0

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
        self.name = name or worker_name()
        self._store, self._handlers, self._slots = store, handlers, slots
        self._given = settings
        self._running: dict[Lease, asyncio.Task[None]] = {}
        self._unsaid: dict[Lease, Finish] = {}
        self._saying: dict[Lease, Finish] = {}
        self._past: dict[Lease, float] = {}
        self._stuck = 0
        self._stopping = asyncio.Event()
        self._flush_due = False
        self._calls: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()
        self._renewed = 0.0
        self._alarm = asyncio.Event()
        self._moment_at = 0.0

    def stop(self) -> None:
        """Take no more; finish or give back what runs, and end."""
        self._stopping.set()

    async def run(self) -> None:
        """Work until stopped. Raises what the store raises at the start; later it waits for the store."""
        self._loop = asyncio.get_running_loop()
        self._settings = self._given or (await self._store.status()).settings
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
            await self._drain()
            for task in ended:
                task.result()
        finally:
            stopped.cancel()
            for loop in loops:
                loop.cancel()
            for task in (*self._running.values(), *self._calls):
                task.cancel()
            await asyncio.gather(
                stopped, *loops, *self._running.values(), *self._calls, return_exceptions=True
            )

    # ---------------------------------------------------------------- what the store says

    async def _join(self) -> None:
        self._renewed = self._loop.time()
        slots = max(0, self._slots - self._stuck)
        self._heed(await self._store.join(self.name, slots, self._runner.serves))

    def _heed(self, shift: Shift) -> None:
        """Take in what a verb answered: work that was lost, work to start, when to look again."""
        self._set_alarm(shift.moment)
        for lease in shift.lost:
            self._end(lease)
        for start in shift.starts:
            self._begin(start)

    async def _read_inbox(self) -> None:
        """Park on the inbox; the store pushes into it what this worker is to start or stop."""
        while True:
            for message in await self._patiently(lambda: self._store.park(self.name, PARK)):
                if isinstance(message, Start):
                    self._begin(message)
                elif isinstance(message, Stop):
                    self._end(message.lease)
                else:
                    self._alarm.set()

    async def _keep_lease(self) -> None:
        """Renew three times per lease, naming all that is held; when that fails for too long, all is lost."""
        lease = self._settings.lease / SECOND
        while True:
            await asyncio.sleep(max(0.05, self._renewed + lease / 3 - self._loop.time()))
            begun = self._loop.time()
            held = [*self._running, *self._unsaid, *self._saying]
            try:
                async with asyncio.timeout(lease / 3):
                    shift = await self._store.renew(self.name, held)
            except (StoreError, TimeoutError) as error:
                _log.warning("the lease could not be renewed", worker=self.name, error=str(error))
                if self._loop.time() > self._renewed + lease:
                    self._lose_all("the store was out of reach for longer than the lease")
                await asyncio.sleep(RETRY_FIRST)
                continue
            self._past = {known: when for known, when in self._past.items() if when > begun - 2 * lease}
            if shift.known or self._stopping.is_set():
                self._renewed = begun
                self._heed(shift)
            else:
                self._lose_all("the store gave this worker up")
                await self._patiently(self._join)

    async def _keep_time(self) -> None:
        """Tick at the moment that the store named, and once a second as a safety net."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.001, self._moment_at - self._loop.time())):
                    await self._alarm.wait()
            self._alarm.clear()
            self._set_alarm(await self._patiently(self._store.tick))

    def _set_alarm(self, moment: Moment) -> None:
        self._moment_at = self._loop.time() + moment.wait(SAFETY_NET)

    # ---------------------------------------------------------------- what runs

    def _begin(self, start: Start) -> None:
        """Start a job, unless it is one that was delivered before."""
        lease = start.lease
        if lease in self._running or lease in self._past:
            return
        self._past[lease] = self._loop.time()
        self._running[lease] = self._loop.create_task(self._carry_out(start))

    async def _carry_out(self, start: Start) -> None:
        lease = start.lease
        try:
            code, message, result = await self._runner.run(start)
        except asyncio.CancelledError:
            code, message, result = Outcome("stopped", "it was stopped")
        if self._running.pop(lease, None) is None:
            return
        self._unsaid[lease] = Finish(lease, code, message, result)
        if len(self._unsaid) >= BATCH:
            self._flush()
        elif not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self._flush)
        if not self._running:
            self._idle.set()

    def _end(self, lease: Lease) -> None:
        """End work that is no longer this worker's; its end is told to the store, which knows what to do."""
        task = self._running.get(lease)
        if task:
            task.cancel()

    def _lose_all(self, why: str) -> None:
        if self._running:
            _log.error("leases lost", worker=self.name, jobs=len(self._running), why=why)
        for lease in list(self._running):
            self._running.pop(lease).cancel()
        self._unsaid.clear()

    def _note_stuck(self, change: int) -> None:
        """Take the slot of a thread that cannot be stopped off the floor, or put it back."""
        self._stuck += change
        if not self._stopping.is_set():
            self._spawn(self._patiently(self._join))

    # ---------------------------------------------------------------- what is told to the store

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

    def _spawn(self, call: "Awaitable[None]") -> None:
        task = asyncio.ensure_future(call)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    async def _patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call the store until it answers."""
        pause = RETRY_FIRST
        while True:
            try:
                return await call()
            except StoreError as error:
                _log.warning("the store does not answer", worker=self.name, error=str(error))
                await asyncio.sleep(pause)
                pause = min(pause * 2, RETRY_LONGEST)

    # ---------------------------------------------------------------- the end

    async def _drain(self) -> None:
        """Take no more, let work end until the grace is over, and hand back the rest."""
        grace = self._settings.grace / SECOND
        with suppress(StoreError):
            self._heed(await self._store.leave(self.name))
        self._idle.clear()
        if self._running:
            with suppress(TimeoutError):
                async with asyncio.timeout(grace):
                    await self._idle.wait()
        rest = list(self._running.values())
        self._running.clear()
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        self._flush()
        with suppress(TimeoutError, StoreError):
            async with asyncio.timeout(max(1.0, grace)):
                await asyncio.gather(*self._calls)
                await self._hand_back()

    async def _hand_back(self) -> None:
        """Give back all that the store still counts as this worker's, also what never reached it."""
        left = await self._store.renew(self.name, [])
        if left.starts:
            await self._store.hand_back(self.name, [start.lease for start in left.starts])
