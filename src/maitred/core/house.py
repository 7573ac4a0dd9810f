"""One queue, whole: its records, its Line and its Floor, and every verb on them.

This is the reference that the scripts in the store are compared with, step by step. Each verb first catches
up with the clock (expired jobs, lost workers), then makes its one change, then seats whoever can be seated.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from maitred.core.delay import Recent
from maitred.core.floor import Floor, Hold, Worker
from maitred.core.job import (
    COMMAND,
    Band,
    Finish,
    Job,
    Lane,
    Lease,
    Message,
    Moment,
    Order,
    Outcome,
    Pause,
    Phase,
    Place,
    Put,
    Refusal,
    Run,
    Shift,
    Start,
    Stop,
    Submitter,
)
from maitred.core.line import Line
from maitred.core.settings import Settings
from maitred.errors import AlreadyEnded, NotMovable, NotWaiting, OtherNonce, SettingsForbidden, UnknownJob

STARTS_PER_CYCLE = 256
EXPIRIES_PER_STEP = 100
WORKERS_PER_STEP = 4
SWEPT_PER_TICK = 200


class House:
    """The state of one queue. Callers pass the time and, where jobs may start, 16 random bytes."""

    def __init__(self, queue: str, settings: Settings) -> None:
        """Open an empty queue."""
        self.queue = queue
        self.settings = settings
        self.now = 0
        self.seq = 0
        self.paused: Pause | None = None
        self.more = False
        self.jobs: dict[int, Job] = {}
        self.newest: dict[str, int] = {}
        self.line = Line()
        self.floor = Floor()
        self.recent = Recent()
        self.inboxes: dict[str, list[Message]] = {}

    # ---------------------------------------------------------------- submitters

    def put(self, orders: Sequence[Order], now: int, dice: bytes) -> list[Put | Refusal]:
        """Create or update each job in turn; a refused one changes nothing."""
        with self._verb(now, dice):
            return [self._put(order) for order in orders]

    def _put(self, order: Order) -> Put | Refusal:
        old = self._newest(order.id)
        if old and old.phase is not Phase.ENDED and old.submitter != order.submitter:
            return "other-submitter"
        announced = self.floor.announced
        if order.need != COMMAND and announced and order.need not in announced:
            return "unknown-handler"
        if old and old.phase in (Phase.WAITING, Phase.HELD):
            return self._update(old, order)
        if len(self.waiting()) >= self.settings.max_total:
            return "full-total"
        if len(self.waiting(order.submitter)) >= self.settings.max_per_submitter:
            return "full-per_submitter"
        record = self._next()
        job = Job(record, order.id, 1, order.submitter, order.need, order.body, self.now)
        outcome: Outcome = "created"
        if old:
            job.version, job.previous = old.version + 1, old.record
            if old.phase is Phase.RUNNING:
                outcome, job.created_at = "next-version", old.created_at
        self.jobs[record] = job
        self.newest[order.id] = record
        self._describe(job, order)
        job.band = order.band
        self._arrive(job, order, arrival=record)
        return Put(outcome, record, job.version)

    def _update(self, job: Job, order: Order) -> Put:
        lane = Lane.of(job.band, order.priority, order.level, order.need)
        if order.band < job.band:
            self._leave(job)
            self._describe(job, order)
            job.band = order.band
            self._arrive(job, order, arrival=self._next())
            return Put("upgraded", job.record, job.version)
        if lane != job.lane:
            self._leave(job)
            self._describe(job, order)
            job.own = True
            self.line.join_own(job)
        else:
            self._describe(job, order)
        return Put("updated", job.record, job.version)

    def _describe(self, job: Job, order: Order) -> None:
        job.body, job.need, job.priority = order.body, order.need, order.priority
        job.level, job.elastic, job.expires_at = order.level, order.elastic, order.expires_at

    def _arrive(self, job: Job, order: Order, arrival: int) -> None:
        delay = self.recent.delay(order, self.settings, self.now)
        job.delay, job.recent = delay.length, delay.recent
        job.release, job.arrival = self.now + delay.length, arrival
        job.own = not order.band.pooled
        if job.own:
            self.line.join_own(job)
        else:
            self.line.join(job, oldest_first=self.settings.order == "oldest-first")
            self.recent.note(order, self.settings, self.now)

    def remove(self, id: str, now: int, dice: bytes) -> None:
        """Delete all versions: out of line at once, or stopped; afterwards the id is unknown."""
        with self._verb(now, dice):
            for job in list(self._versions(id)):
                if job.phase is Phase.WAITING:
                    self._leave(job)
                elif job.phase is Phase.RUNNING:
                    self._stop(job, "deleted")
                del self.jobs[job.record]
            del self.newest[id]

    def cancel(self, id: str, message: str, now: int, dice: bytes) -> None:
        """End all versions that have not ended, as `failed` with code `cancelled`."""
        with self._verb(now, dice):
            live = [job for job in self._versions(id) if job.phase is not Phase.ENDED]
            if not live:
                raise AlreadyEnded
            for job in live:
                if job.phase is Phase.WAITING:
                    self._leave(job)
                else:
                    self._log(job, self._stop(job, "cancelled"), "cancelled")
                self._end(job, "cancelled", message)

    # ---------------------------------------------------------------- operators

    def release(self, id: str, nonce: int | None, now: int, dice: bytes) -> None:
        """Move a scheduled or bulk job to the front."""
        with self._verb(now, dice):
            job = self._movable(id, nonce)
            self._leave(job)
            self._to_front(job)

    def delay(self, id: str, nonce: int | None, now: int, dice: bytes) -> None:
        """Move a scheduled or bulk job behind all others of its band and priority."""
        with self._verb(now, dice):
            job = self._movable(id, nonce)
            self.line.postpone(job, self.now)
            if not job.own:
                self._next()  # the store numbers the new bottom of the stack

    def _movable(self, id: str, nonce: int | None) -> Job:
        job = next(self._versions(id))
        if job.phase is not Phase.WAITING:
            raise NotWaiting
        if not job.band.pooled:
            raise NotMovable
        if nonce is not None and nonce != self.line.place_of(job).nonce:
            raise OtherNonce
        return job

    def pause(self, pause: Pause, now: int, dice: bytes) -> None:
        """Start nothing more; the queue goes on to accept."""
        with self._verb(now, dice):
            self.paused = pause

    def resume(self, now: int, dice: bytes) -> None:
        """Start again."""
        with self._verb(now, dice):
            self.paused = None

    def configure(self, settings: Settings, now: int, dice: bytes) -> None:
        """Take new settings; the order cannot change while scheduled or bulk jobs wait."""
        with self._verb(now, dice):
            standing = any(place.lane.band.pooled for place in self.line)
            if settings.order != self.settings.order and standing:
                raise SettingsForbidden
            self.settings = settings

    # ---------------------------------------------------------------- workers

    def join(self, worker: str, slots: int, serves: frozenset[str], now: int, dice: bytes) -> Shift:
        """Let a worker in, with its slots, and give it work."""
        self._catch_up(now)
        known = self.floor.workers.get(worker)
        holds = known.holds if known else {}
        self.floor.workers[worker] = Worker(
            worker, slots, serves, self.now + self.settings.lease, False, holds
        )
        self.floor.announced |= serves
        return self._shift([], worker, dice)

    def take(self, worker: str, now: int, dice: bytes) -> Shift:
        """Give the worker what it has room for."""
        self._catch_up(now)
        return self._shift([], worker, dice)

    def finish(self, worker: str, results: Sequence[Finish], now: int, dice: bytes) -> Shift:
        """End the jobs that the worker still holds, and give it the next ones."""
        self._catch_up(now)
        lost = []
        for result in results:
            hold = self._held(worker, result.lease)
            if not hold or hold.stopping:
                lost.append(result.lease)
            if not hold:
                continue
            self.floor.drop(self.floor.workers[worker], hold.record)
            if not hold.stopping:
                job = self.jobs[hold.record]
                self._log(job, hold, result.code)
                self._end(job, result.code, result.message, result.result)
        return self._shift(lost, worker, dice)

    def hand_back(self, worker: str, leases: Sequence[Lease], now: int, dice: bytes) -> Shift:
        """Put jobs back at the front, in the order in which they had started, with no attempt spent."""
        self._catch_up(now)
        lost, holds = [], []
        for lease in leases:
            hold = self._held(worker, lease)
            if hold and hold not in holds:
                holds.append(hold)
            else:
                lost.append(lease)
        self._give_back(worker, holds, lost=False)
        return self._shift(lost, worker, dice)

    def renew(self, worker: str, held: Sequence[Lease], now: int, dice: bytes) -> Shift:
        """Extend the worker's lease; confirm what it holds, tell what it lost and what it missed.

        A stopped job that the worker does not know of gives its slot back at once.
        """
        self._catch_up(now)
        me = self.floor.workers.get(worker)
        if me is None:
            return self._shift(list(held), worker, dice)
        me.lease_end = self.now + self.settings.lease
        lost, named = [], set()
        for lease in held:
            hold = self._held(worker, lease)
            if hold:
                named.add(hold.record)
                hold.confirmed = True
            if not hold or hold.stopping:
                lost.append(lease)
        missed = []
        for hold in sorted(me.holds.values(), key=lambda hold: hold.number):
            if hold.record in named:
                continue
            if hold.stopping:
                self.floor.drop(me, hold.record)
            else:
                missed.append(self._start_of(hold))
        shift = self._shift(lost, worker, dice)
        return shift._replace(starts=missed + shift.starts)

    def leave(self, worker: str, now: int, dice: bytes) -> Shift:
        """Take the worker's free slots off the floor; it is gone when it holds nothing more."""
        self._catch_up(now)
        me = self.floor.workers.get(worker)
        if me:
            me.draining = True
            if not me.holds:
                del self.floor.workers[worker]
        return self._shift([], worker, dice)

    # ---------------------------------------------------------------- time

    def tick(self, now: int, dice: bytes) -> Moment:
        """Do what the clock asks for; answer the next moment that matters."""
        with self._verb(now, dice):
            swept = self._sweep(SWEPT_PER_TICK)
        return Moment(self.now, self.now) if swept == SWEPT_PER_TICK else self.moment()

    def sweep(self, now: int, limit: int, dice: bytes) -> int:
        """Forget jobs that ended longer ago than the retention, at most `limit`, oldest first."""
        with self._verb(now, dice):
            return self._sweep(limit)

    def _sweep(self, limit: int) -> int:
        old = sorted(
            (job.ended_at, job.record)
            for job in self.jobs.values()
            if job.phase is Phase.ENDED and job.ended_at <= self.now - self.settings.retention
        )[:limit]
        for _, record in old:
            job = self.jobs.pop(record)
            older = job.previous in self.jobs
            if self.newest[job.id] == record:
                if older:
                    self.newest[job.id] = job.previous
                else:
                    del self.newest[job.id]
            for newer in self.jobs.values():
                if older and newer.previous == record:
                    newer.previous = job.previous
        return len(old)

    def moment(self) -> Moment:
        """Give the time and the next moment that matters."""
        return Moment(self.now, self.next_at())

    def next_at(self) -> int | None:
        """Give the earliest moment after now at which something falls due, expires or is lost."""
        moments = [job.expires_at for job in self.waiting() if job.expires_at]
        moments += [worker.lease_end for worker in self.floor.workers.values()]
        if self.paused is None:
            moments += [place.release for place in self.line if not place.due(self.now)]
        if self.more:
            moments.append(self.now)
        return min(moments, default=None)

    # ---------------------------------------------------------------- readers

    def waiting(self, submitter: Submitter | None = None) -> list[Job]:
        """List the waiting jobs, of one submitter or of all."""
        return [
            job
            for job in self.jobs.values()
            if job.phase is Phase.WAITING and submitter in (None, job.submitter)
        ]

    def versions(self, id: str) -> list[Job]:
        """List the kept versions of a job, newest first; an unknown id is an error."""
        return list(self._versions(id))

    # ---------------------------------------------------------------- the steps that verbs are made of

    @contextmanager
    def _verb(self, now: int, dice: bytes) -> Iterator[None]:
        """Catch up with the clock, do the verb or refuse it, and seat whoever can be seated."""
        self._catch_up(now)
        try:
            yield
        finally:
            self._cycle(dice)

    def _catch_up(self, now: int) -> None:
        self.now = max(self.now, now)
        self._expire_due()
        dead = sorted(
            (worker.lease_end, worker.name.encode(), worker.name)
            for worker in self.floor.workers.values()
            if worker.lease_end <= self.now
        )
        for _, _, name in dead[:WORKERS_PER_STEP]:
            worker = self.floor.workers[name]
            worker.draining = True
            self._give_back(name, list(worker.holds.values()), lost=True)
            self.floor.workers.pop(name, None)
            self.inboxes.pop(name, None)

    def _expire_due(self) -> None:
        expired = sorted(
            (job.expires_at, job.record)
            for job in self.waiting()
            if job.expires_at and job.expires_at <= self.now
        )
        for _, record in expired[:EXPIRIES_PER_STEP]:
            self._leave(self.jobs[record])
            self._expire(self.jobs[record])

    def _cycle(self, dice: bytes, caller: str | None = None) -> list[Start]:
        """Seat whoever can be seated, in line order; what the caller gets is answered, the rest is sent."""
        mine: list[Start] = []
        self.inboxes = {name: sent for name, sent in self.inboxes.items() if name in self.floor.workers}
        self._expire_due()
        if self.paused is not None:
            return mine
        left = STARTS_PER_CYCLE
        self.more = False
        for place in self.line.in_order(self.now):
            if not left or not (place.due(self.now) or self.settings.eager):
                break
            worker = self.floor.pick(place.lane.need, caller)
            if not worker:
                continue
            left -= 1
            self.more = not left
            job = self._seat(place)
            if job.expires_at and job.expires_at <= self.now:
                self._expire(job)
                continue
            start = self._start(job, worker, dice)
            if worker.name == caller:
                mine.append(start)
            else:
                self.inboxes.setdefault(worker.name, []).append(start)
        return mine

    def _seat(self, place: Place) -> Job:
        job = self.jobs[self.line.job_for(place)]
        self._leave(job)
        job.release, job.arrival = place.release, place.arrival
        return job

    def _start(self, job: Job, worker: Worker, dice: bytes) -> Start:
        job.phase, job.worker, job.stage = Phase.RUNNING, worker.name, max(job.stage, 1)
        job.attempt += 1
        hold = Hold(job.record, dice, self.now, self._next())
        worker.holds[job.record] = hold
        return self._start_of(hold)

    def _start_of(self, hold: Hold) -> Start:
        job = self.jobs[hold.record]
        lease = Lease(hold.record, hold.token)
        return Start(lease, job.id, job.version, job.attempt, job.need, job.body, hold.start)

    def _shift(self, lost: list[Lease], worker: str, dice: bytes) -> Shift:
        known = worker in self.floor.workers
        return Shift(lost, self._cycle(dice, worker), self.moment(), known=known)

    def _held(self, worker: str, lease: Lease) -> Hold | None:
        me = self.floor.workers.get(worker)
        hold = me.holds.get(lease.record) if me else None
        return hold if hold and hold.token == lease.token else None

    def _give_back(self, worker: str, holds: list[Hold], *, lost: bool) -> None:
        """Return jobs to the front, last started first, so that the first started goes first again."""
        for hold in sorted(holds, key=lambda hold: -hold.number):
            self.floor.drop(self.floor.workers[worker], hold.record)
            if hold.stopping:
                continue
            job = self.jobs[hold.record]
            spent = lost and hold.confirmed
            self._log(job, hold, "lost" if lost else "handed-back")
            if self.newest[job.id] != job.record:
                self._end(job, "superseded", "a newer version took its place")
                continue
            if not spent and job.unspent < self.settings.attempts:
                job.unspent += 1
                job.attempt -= 1
            else:
                job.unspent = 0
                if job.attempt >= self.settings.attempts:
                    self._end(job, "attempts", f"lost with its worker {job.attempt} times")
                    continue
            self._to_front(job)

    def _to_front(self, job: Job) -> None:
        job.phase, job.band, job.own, job.worker = Phase.WAITING, Band.FRONT, True, ""
        job.release, job.arrival = self.now, self._next()
        self.line.join_own(job)

    def _stop(self, job: Job, code: str) -> Hold:
        hold = self.floor.workers[job.worker].holds[job.record]
        hold.stopping = code
        self.inboxes.setdefault(job.worker, []).append(Stop(Lease(job.record, hold.token), code))
        return hold

    def _leave(self, job: Job) -> None:
        place = self.line.leave(job)
        job.release, job.arrival, job.own = place.release, place.arrival, False

    def _expire(self, job: Job) -> None:
        self._end(job, "expired", "it was still waiting when it expired")

    def _end(self, job: Job, code: str, message: str, result: bytes = b"") -> None:
        job.phase, job.own, job.ended_at = Phase.ENDED, False, self.now
        job.code, job.message, job.result = code, message, result

    def _log(self, job: Job, hold: Hold, code: str) -> None:
        job.timeline.append(Run(job.stage, job.version, job.attempt, job.worker, hold.start, self.now, code))

    def _next(self) -> int:
        self.seq = max(self.seq + 1, self.now)
        return self.seq

    def _newest(self, id: str) -> Job | None:
        record = self.newest.get(id)
        return self.jobs[record] if record is not None else None

    def _versions(self, id: str) -> Iterator[Job]:
        job = self._newest(id)
        if job is None:
            raise UnknownJob(self.queue, id)
        while job is not None:
            yield job
            job = self.jobs.get(job.previous)
