"""The reference store: the pure core in this process's memory.

It is what the other stores are compared with, and a test helper for users. Its state ends with the process.
"""

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import replace

from maitred.core.floor import SETTLED
from maitred.core.house import House
from maitred.core.invariants import Violation, violations
from maitred.core.job import (
    Admission,
    Finish,
    Job,
    Lease,
    Message,
    Moment,
    Order,
    Phase,
    Put,
    Refusal,
    Shift,
    Submitter,
    View,
    Wake,
)
from maitred.core.settings import Settings
from maitred.core.snapshot import Snapshot, state_counts, take_snapshot
from maitred.errors import UnknownJob, UnknownQueue
from maitred.store.memory_keyring import MemoryKeyring
from maitred.store.memory_news import NewsVerbs
from maitred.store.port import (
    CallListener,
    Clock,
    Dice,
    EndedPage,
    LinePage,
    Progress,
    Records,
    ScriptTime,
    Status,
    SubmitterView,
    WorkerView,
)

NEVER = 1 << 62


def _wall_clock() -> int:
    return time.time_ns() // 1000


def _random_bytes() -> bytes:
    return os.urandom(16)


class MemoryStore(NewsVerbs):
    """One queue in memory. Each verb that may have changed something sets `touched`."""

    def __init__(self, queue: str, *, clock: Clock | None = None, dice: Dice | None = None) -> None:
        """Name the queue; it exists once it is configured."""
        super().__init__()
        self.queue = queue
        self._clock = clock or _wall_clock
        self._dice = dice or _random_bytes
        self._state: House | None = None
        self._arrived: dict[str, asyncio.Event] = {}
        self._alarm = NEVER
        self.touched = asyncio.Event()

    @property
    def exists(self) -> bool:
        """Tell whether the queue was configured."""
        return self._state is not None

    @property
    def _house(self) -> House:
        if self._state is None:
            raise UnknownQueue(self.queue)
        return self._state

    async def configure(self, settings: Settings) -> None:
        """Make the queue, or give it new settings."""
        self.open(settings)

    def open(self, settings: Settings) -> None:
        """Do what `configure` does, for those who have no loop yet."""
        if self._state is None:
            self._state = House(self.queue, settings)
        self._house.configure(settings, self._clock(), self._dice())
        self._ring()

    async def put(self, orders: Sequence[Order]) -> list[Put | Refusal]:
        """Create or update jobs in turn."""
        answers = self._house.put(orders, self._clock(), self._dice())
        self._ring()
        return answers

    async def put_shown(self, order: Order) -> tuple[Put | Refusal, View | None]:
        """Create or update a job and show it."""
        [answer] = await self.put([order])
        return answer, self._find(order.id, None)

    async def release(self, id: str, nonce: int | None = None) -> None:
        """Move a job to the front."""
        self._house.release(id, nonce, self._clock(), self._dice())
        self._ring()

    async def delay(self, id: str, nonce: int | None = None) -> None:
        """Move a job to the end."""
        self._house.delay(id, nonce, self._clock(), self._dice())
        self._ring()

    async def remove(self, id: str) -> None:
        """Delete all versions of a job."""
        self._house.remove(id, self._clock(), self._dice())
        self._ring()

    async def cancel(self, id: str, message: str) -> None:
        """End all versions that have not ended."""
        self._house.cancel(id, message, self._clock(), self._dice())
        self._ring()

    async def shorten(self, id: str, duration: int) -> None:
        """Lower a job's duration."""
        self._house.shorten(id, duration, self._clock(), self._dice())
        self._ring()

    async def admit(self, order: Order) -> Admission:
        """Start an interactive job at once, or deny it."""
        admission = self._house.admit(order, self._clock(), self._dice())
        self._ring()
        return admission

    async def pause(self, by: str, reason: str) -> None:
        """Start nothing more."""
        self._house.pause(by, reason, self._clock(), self._dice())
        self._ring()

    async def resume(self) -> None:
        """Start again."""
        self._house.resume(self._clock(), self._dice())
        self._ring()

    async def join(self, worker: str, slots: int, serves: Sequence[str], about: bytes = b"") -> Shift:
        """Let a worker in."""
        now, dice = self._clock(), self._dice()
        return self._rung(self._house.join(worker, slots, frozenset(serves), now, dice, about=about))

    async def take(self, worker: str) -> Shift:
        """Give the worker what it has room for."""
        return self._rung(self._house.take(worker, self._clock(), self._dice()))

    async def finish(self, worker: str, results: Sequence[Finish]) -> Shift:
        """End jobs and give the worker the next ones."""
        return self._rung(self._house.finish(worker, results, self._clock(), self._dice()))

    async def hand_back(self, worker: str, leases: Sequence[Lease]) -> Shift:
        """Put jobs back at the front."""
        return self._rung(self._house.hand_back(worker, leases, self._clock(), self._dice()))

    async def renew(self, worker: str, held: Sequence[Lease]) -> Shift:
        """Extend the worker's lease."""
        return self._rung(self._house.renew(worker, held, self._clock(), self._dice()))

    async def leave(self, worker: str) -> Shift:
        """Take the worker's free slots off the floor."""
        return self._rung(self._house.leave(worker, self._clock(), self._dice()))

    async def park(self, worker: str, timeout: float) -> list[Message]:
        """Wait for messages in the worker's inbox."""
        event = self._arrived.setdefault(worker, asyncio.Event())
        if not self._house.inboxes.get(worker):
            event.clear()
            try:
                async with asyncio.timeout(timeout):
                    await event.wait()
            except TimeoutError:
                return []
        return self._house.inboxes.pop(worker, [])

    async def tick(self) -> Moment:
        """Do what the clock asks for."""
        moment = self._house.tick(self._clock(), self._dice())
        self._ring()
        return moment

    async def sweep(self, limit: int) -> int:
        """Forget old jobs."""
        swept = self._house.sweep(self._clock(), limit, self._dice())
        self._ring()
        return swept

    async def read(self, ids: Sequence[str], version: int | None = None) -> list[View | None]:
        """Show jobs by id."""
        return [self._find(id, version) for id in ids]

    async def records(self, records: Sequence[int]) -> Records:
        """Show jobs by their records."""
        jobs = self._house.jobs
        found = {record: self._view(jobs[record]) for record in records if record in jobs}
        return Records(found, self._told)

    async def running(self) -> list[View]:
        """Show the jobs that run, in the order of their starts."""
        holds = [hold for worker in self._house.floor.workers.values() for hold in worker.holds.values()]
        return [
            self._view(self._house.jobs[hold.record])
            for hold in sorted(holds, key=lambda hold: hold.number)
            if hold.stopping not in SETTLED
        ]

    async def line(self, cursor: bytes | None, limit: int) -> LinePage:
        """Show waiting jobs in line order."""
        house = self._house
        now, first = (int(part) for part in cursor.split()) if cursor else (self._time(), 0)
        places = house.line.in_order(now)
        views = [self._view(house.jobs[house.line.job_for(place)]) for place in places[first : first + limit]]
        after = first + limit
        following = f"{now} {after}".encode() if after < len(places) else None
        return LinePage(views, following, len(places))

    async def ended(self, offset: int, limit: int) -> EndedPage:
        """Show ended jobs, last first."""
        jobs = [job for job in self._house.jobs.values() if job.phase is Phase.ENDED]
        untold = self._house.outbox.untold
        jobs.sort(key=lambda job: (bool(job.batch or untold(job)), -job.ended_at, -job.record))
        return EndedPage([self._view(job) for job in jobs[offset : offset + limit]], len(jobs))

    async def submitter(self, submitter: Submitter, limit: int = 5_000) -> SubmitterView:
        """Show what one submitter has in line."""
        house = self._house
        owned = sorted(
            (p for p in house.line.owned.values() if p.submitter == submitter),
            key=lambda p: (p.arrival, p.owner),
        )
        pools = sorted(key for key in house.line.pools if key[1] == submitter)
        jobs = [place.owner for place in owned][:limit]
        for key in pools:
            jobs += house.line.stacks[key][:limit]
        places = [(p.arrival, p.release) for key in pools for p in house.line.pools[key][:limit]]
        settings = house.settings
        recent = house.recent.count(submitter, settings, self._time()) if settings.per_recent else 0
        return SubmitterView([house.jobs[record].id for record in jobs], places, recent)

    async def settings(self) -> Settings:
        """Show the queue's settings."""
        return self._house.settings

    async def status(self) -> Status:
        """Show the queue."""
        house = self._house
        workers = [
            WorkerView(
                w.name, w.slots, len(w.holds), w.draining, tuple(sorted(w.serves)), w.lease_end, w.about
            )
            for w in house.floor.workers.values()
        ]
        return Status(
            settings=house.settings,
            now=self._time(),
            counts=state_counts(house.jobs, house.settings.stages),
            jobs=len(house.newest),
            waiting=len(house.waiting()),
            free=sum(worker.free for worker in house.floor.workers.values()),
            paused=house.paused,
            workers=sorted(workers, key=lambda worker: (worker.lease_end, worker.name)),
            limits=tuple(house.floor.limits),
            used=tuple(house.floor.used),
            holds=tuple(house.holds.flags.values()),
            space_used=house.space.used if house.settings.space else 0,
        )

    async def check(self, *, repair: bool = False, progress: Progress | None = None) -> list[Violation]:
        """Look for broken invariants; the reference has nothing to repair."""
        del repair
        found = violations(take_snapshot(self._house), self._house.settings)
        if progress:
            progress("jobs", len(self._house.jobs))
        return found

    async def snapshot(self) -> Snapshot:
        """Give all state at one moment."""
        return take_snapshot(self._house)

    def _find(self, id: str, version: int | None) -> View | None:
        try:
            versions = self._house.versions(id)
        except UnknownJob:
            return None
        for job in versions:
            if version in (None, job.version):
                return self._view(job)
        return None

    def _view(self, job: Job) -> View:
        house, now = self._house, self._time()
        position = release = nonce = None
        if job.phase is Phase.WAITING:
            place = house.line.place_of(job)
            position = 1 + sum(other.rank(now) < place.rank(now) for other in house.line)
            release, nonce = place.release, place.nonce
        serving = [w for w in house.floor.workers.values() if job.need in w.serves and not w.draining]
        running = (v.version for v in house.versions(job.id) if v.phase is Phase.RUNNING)
        hold = house.floor.workers[job.worker].holds[job.record] if job.phase is Phase.RUNNING else None
        return View(
            job=replace(job, data=b"", timeline=list(job.timeline)),
            position=position,
            release=release,
            nonce=nonce,
            running_versions=tuple(running),
            now=now,
            paused=house.paused,
            serving=len(serving),
            free=max((w.free for w in serving), default=0),
            limits=tuple(house.floor.limits),
            used=tuple(house.floor.used),
            started=hold.start if hold else None,
            granted=hold.duration if hold else None,
            holding=hold.level if hold else None,
            holds=house.holds.all_of(job),
            space_free=house.settings.space - house.space.used if house.settings.space else None,
            stopping=house.still_stops(job),
        )

    def _rung(self, shift: Shift) -> Shift:
        self._ring(answered=shift.known)
        return shift

    def _ring(self, *, answered: bool = False) -> None:
        self.touched.set()
        self._note_changes()
        self._wake(answered=answered)
        for name, event in self._arrived.items():
            if self._house.inboxes.get(name):
                event.set()

    def _wake(self, *, answered: bool) -> None:
        """Tell one worker to look at the clock if the next moment that matters has come forward.

        A worker whose call was answered knows that moment.
        """
        house = self._house
        moment = house.next_at()
        forward = moment is not None and (moment < self._alarm or self._alarm <= house.now)
        if forward and not answered and house.floor.workers:
            house.inboxes.setdefault(next(iter(house.floor.workers)), []).append(Wake())
        self._alarm = NEVER if moment is None else moment


class MemoryStores:
    """All queues of one process."""

    def __init__(self, *, clock: Clock | None = None, dice: Dice | None = None) -> None:
        """Begin with no queue."""
        self._clock, self._dice = clock, dice
        self._queues: dict[str, MemoryStore] = {}
        self.keyring = MemoryKeyring()

    def queue(self, name: str) -> MemoryStore:
        """Give the store of one queue."""
        if name not in self._queues:
            self._queues[name] = MemoryStore(name, clock=self._clock, dice=self._dice)
        return self._queues[name]

    async def names(self) -> list[str]:
        """Name the queues that were configured."""
        return sorted(name for name, store in self._queues.items() if store.exists)

    async def ping(self) -> None:
        """Answer always."""

    def on_call(self, listener: CallListener) -> None:
        """Tell of nothing: there is no server to call."""

    async def script_time(self) -> ScriptTime | None:
        """Tell nothing: there are no scripts."""
        return None

    async def close(self) -> None:
        """Keep the state; there is nothing to give back."""
