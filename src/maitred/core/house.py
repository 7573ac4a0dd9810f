"""One queue, whole: every verb on its records, its Line and its Floor.

This is the reference that the scripts in the store are compared with, step by step. Each verb first catches
up with the clock (expired jobs, lost workers), then makes its one change, then seats whoever can be seated.
"""

from collections.abc import Sequence

from maitred.core.floor import SETTLED, Worker
from maitred.core.job import (
    Admission,
    Band,
    Denial,
    Finish,
    Job,
    Lease,
    Moment,
    Order,
    Pause,
    Phase,
    Shift,
)
from maitred.core.notices import Delivery, Pending
from maitred.core.pipeline import Ending
from maitred.core.settings import Settings
from maitred.core.speaking import Speaking
from maitred.errors import (
    LockLost,
    NotMovable,
    NotWaiting,
    OtherNonce,
    SettingsForbidden,
)

SWEPT_PER_TICK = 200


class House(Speaking):
    """The verbs of one queue. Callers pass the time and, where jobs may start, 16 random bytes."""

    # ---------------------------------------------------------------- interactive jobs

    def admit(self, order: Order, now: int, dice: bytes) -> Admission:
        """Start an interactive job if a slot is free after the cycle, or deny it and keep nothing of it."""
        self._catch_up(now)
        self._cycle(dice)
        denied = self._denied(order)
        worker = None if denied else self.floor.pick(order.need, None)
        record = 0
        if worker:
            record = self._next()
            job = Job(record, order.id, 1, order.submitter, order.need, order.body, self.now)
            job.band, job.level, job.elastic = Band.INTERACTIVE, 1, False
            job.duration, job.release, job.arrival = self.settings.interactive_cap, self.now, record
            job.callback, job.abandon = order.callback, order.abandon
            self.jobs[record] = job
            self._set_deadline(job)
            self.newest[order.id] = record
            self._send(worker.name, self._start(job, worker, dice, 1))
        elif denied == "slots" and self.settings.elastic == "squeeze":
            self._lower_one(dice)
        self._cycle(dice)
        self.batches.settle(self.jobs, self.now)
        return Admission(record, denied)

    def _denied(self, order: Order) -> Denial:
        mine = [h for _, h in self.floor.interactives() if self.jobs[h.record].submitter == order.submitter]
        if order.id in self.newest or order.id in self.stops.values():
            return "known"
        if self.paused is not None:
            return "paused"
        if len(mine) >= self.settings.interactive_per_submitter:
            return "per-submitter"
        if not any(order.need in w.serves for w in self.floor.workers.values() if not w.draining):
            return "no-worker"
        return "" if self.floor.pick(order.need, None) else "slots"

    def _lower_one(self, dice: bytes) -> None:
        """Lower one elastic run of the highest class by one class."""
        for worker, hold in self.floor.highest(dice, 1):
            self._give_way(worker, hold, hold.level - 1, "cut")

    # ---------------------------------------------------------------- operators

    def release(self, id: str, nonce: int | None, now: int, dice: bytes) -> None:
        """Move a scheduled or bulk job to the front."""
        with self._verb(now, dice):
            job = self._movable(id, nonce)
            self._leave(job)
            self._front(job)
            self._stand_in_line(job)

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

    def pause(self, by: str, reason: str, now: int, dice: bytes) -> None:
        """Start nothing more; the queue goes on to accept."""
        with self._verb(now, dice):
            self.paused = Pause(by, reason, self.now)

    def resume(self, now: int, dice: bytes) -> None:
        """Start again."""
        with self._verb(now, dice):
            self.paused = None

    def configure(self, settings: Settings, now: int, dice: bytes) -> None:
        """Take new settings; neither order nor classes can change while jobs stand in their way."""
        with self._verb(now, dice):
            standing = any(place.lane.band.pooled for place in self.line)
            if settings.order != self.settings.order and standing:
                raise SettingsForbidden
            used = self.waiting() or any(worker.holds for worker in self.floor.workers.values())
            if settings.floor_plan != self.settings.floor_plan and used:
                raise SettingsForbidden
            unended = any(job.phase is not Phase.ENDED for job in self.jobs.values())
            old = self.settings
            if unended and (settings.stages, settings.ledger) != (old.stages, old.ledger):
                raise SettingsForbidden
            self.floor.settings = settings

    # ---------------------------------------------------------------- workers

    def join(
        self, worker: str, slots: int, serves: frozenset[str], now: int, dice: bytes, *, about: bytes = b""
    ) -> Shift:
        """Let a worker in, with its slots and what it says about itself, and give it work."""
        self._catch_up(now)
        known = self.floor.workers.get(worker)
        holds = known.holds if known else {}
        self.floor.workers[worker] = Worker(
            worker, slots, serves, self.now + self.settings.lease, False, holds, about
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
        lost, ended = [], []
        me = self.floor.workers.get(worker)
        for number, result in enumerate(results):
            hold = self._held(worker, result.lease)
            if not hold or hold.stopping in SETTLED:
                lost.append(result.lease)
            if me and hold:
                if hold.stopping in SETTLED:
                    self._add_to_end(me, hold, result)
                self._unhand(me, hold)
                ended.append(Ending(hold, result, number))
        starts = [
            self._settle(me, ending, dice) for ending in ended if me and ending.hold.stopping not in SETTLED
        ]
        carried = [start for start in starts if start]
        shift = self._shift(lost, worker, dice)
        return shift._replace(starts=carried + shift.starts)

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

        A stopped job that the worker does not know of gives its slot back at once. What was told about the
        others is told again, since messages may be lost.
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
            if not hold or hold.stopping in SETTLED:
                lost.append(lease)
            elif hold.stopping:
                self._say_stop(me, hold)
            elif hold.lowered:
                self._say_lower(me, hold)
        unknown = [hold for hold in me.holds.values() if hold.record not in named]
        self._give_back(worker, [hold for hold in unknown if hold.stopping], lost=False)
        missed = [
            self._start_of(hold)
            for hold in sorted(unknown, key=lambda hold: hold.number)
            if not hold.stopping
        ]
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

    # ---------------------------------------------------------------- submitters who are told, or watch

    def lock_notices(self, owner: str, token: bytes, limit: int, now: int, dice: bytes) -> list[Pending]:
        """Lock the first notices that are due, for as long as a try may take."""
        with self._verb(now, dice):
            return self.outbox.lock(
                owner, token, self.now, limit, lambda record: self.still_stops(self.jobs[record])
            )

    def told_notice(self, record: int, token: bytes, delivery: Delivery, now: int, dice: bytes) -> None:
        """Log a try at a notice, and go on with the next or try again."""
        with self._verb(now, dice):
            job = self.jobs.get(record)
            if job is None:
                raise LockLost
            self.outbox.told(job, token, delivery, self.now)

    def attend(self, ids: Sequence[str], now: int, dice: bytes) -> None:
        """Note that somebody watches these jobs, all versions of them; unknown ones are passed over."""
        with self._verb(now, dice):
            for id in ids:
                for job in self._kept_versions(id):
                    self._set_deadline(job)

    # ---------------------------------------------------------------- time

    def tick(self, now: int, dice: bytes) -> Moment:
        """Do what the clock asks for; answer the next moment that matters."""
        with self._verb(now, dice):
            swept = self._sweep(SWEPT_PER_TICK)
        if swept == SWEPT_PER_TICK:
            return Moment(self.now, self.now, self.now)
        return Moment(self.now, self.next_at(), self.idle_until())

    def idle_until(self) -> int | None:
        """Tell up to when there is nothing to do if nothing happens; now, while somebody is to be told."""
        batches = self.batches.all.values()
        if self.outbox.due or any(batch.unsent or batch.work(self.now) for batch in batches):
            return self.now
        ages = [job.ended_at for job in self.jobs.values() if self._may_be_swept(job)]
        ages += [batch.aged_at for batch in batches]
        moments = [age + self.settings.retention for age in ages]
        if (next_at := self.next_at()) is not None:
            moments.append(next_at)
        return min(moments, default=None)

    def _may_be_swept(self, job: Job) -> bool:
        """Tell whether a job goes when it is old: not one of a batch, or of which something is to be told."""
        return job.phase is Phase.ENDED and not job.batch and not self.outbox.untold(job)

    def sweep(self, now: int, limit: int, dice: bytes) -> int:
        """Forget jobs that ended longer ago than the retention, at most `limit`, oldest first."""
        with self._verb(now, dice):
            return self._sweep(limit)

    def _sweep(self, limit: int) -> int:
        """Forget old jobs; those of a batch go with it."""
        self._sweep_batches(limit)
        old = sorted(
            (job.ended_at, job.record)
            for job in self.jobs.values()
            if self._may_be_swept(job) and job.ended_at <= self.now - self.settings.retention
        )[:limit]
        for _, record in old:
            self._forget(self.jobs[record])
        return len(old)
