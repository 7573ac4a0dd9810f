"""One queue, whole: every verb on its records, its Line and its Floor.

This is the reference that the scripts in the store are compared with, step by step. Each verb first catches
up with the clock (expired jobs, lost workers), then makes its one change, then seats whoever can be seated.
"""

from collections.abc import Sequence

from maitred.core.classes import level_for
from maitred.core.floor import SETTLED, Worker
from maitred.core.job import (
    COMMAND,
    Admission,
    Band,
    Denial,
    Finish,
    Job,
    Lane,
    Lease,
    Moment,
    Order,
    Outcome,
    Pause,
    Phase,
    Put,
    Refusal,
    Shift,
)
from maitred.core.restoring import Restoring
from maitred.core.settings import Settings
from maitred.core.stages import STAGE
from maitred.errors import (
    AlreadyEnded,
    Interactive,
    LongerDuration,
    NotMovable,
    NotWaiting,
    OtherNonce,
    SettingsForbidden,
)

SWEPT_PER_TICK = 200


class House(Restoring):
    """The verbs of one queue. Callers pass the time and, where jobs may start, 16 random bytes."""

    # ---------------------------------------------------------------- submitters

    def put(self, orders: Sequence[Order], now: int, dice: bytes) -> list[Put | Refusal]:
        """Create or update each job in turn; a refused one changes nothing."""
        with self._verb(now, dice):
            return [self._put(order) for order in orders]

    def _put(self, order: Order) -> Put | Refusal:
        old = self._newest(order.id)
        live = self._unended(old)
        known = self._known_in_ledger(order) or self._known_row(order)
        if known:
            return known
        refusal = self._forbidden(order, live) or self._not_for_batch(order, old, live)
        if refusal:
            return refusal
        if old and old.phase in (Phase.WAITING, Phase.HELD):
            return self._update(old, order)
        if len(self.waiting()) >= self.settings.max_total:
            return "full-total"
        counted = [job for job in self.waiting(order.submitter) if not job.exempt]
        if not order.exempt and len(counted) >= self.settings.max_per_submitter:
            return "full-per_submitter"
        record = self._next()
        job = Job(record, order.id, 1, order.submitter, order.need, order.body, self.now)
        outcome: Outcome = "created"
        if old:
            job.version, job.previous = old.version + 1, old.record
        if live:
            outcome, job.created_at = "next-version", live.created_at
        self.jobs[record] = job
        self.newest[order.id] = record
        self._describe(job, order)
        job.band, job.profile, job.exempt = order.band, order.profile, order.exempt
        job.ledger, job.status = order.ledger, order.status
        self._enlist(job, order, old)
        self._arrive(job, order, arrival=record)
        return Put(outcome, record, job.version)

    def _known_in_ledger(self, order: Order) -> Put | None:
        """Pass over a job that is here under this id of the ledger's tree, unless it is the one to update."""
        versions = self.versions(order.id) if order.ledger and order.id in self.newest else []
        known = next((job for job in versions if job.ledger == order.ledger), None)
        if known is None or (known is versions[0] and known.phase in (Phase.WAITING, Phase.HELD)):
            return None
        return Put("known", known.record, known.version)

    def _forbidden(self, order: Order, live: Job | None) -> Refusal | None:
        """Tell what forbids this PUT whether or not the job waits."""
        if order.level > len(self.settings.levels):
            return "no-class"
        if live and live.submitter != order.submitter:
            return "other-submitter"
        if live and live.band is Band.INTERACTIVE:
            return "interactive"
        announced = self.floor.announced
        refusable = order.need != COMMAND and not order.need.startswith(STAGE)
        if refusable and announced and order.need not in announced:
            return "unknown-handler"
        return None

    def _unended(self, job: Job | None) -> Job | None:
        """Give the newest version that has not ended; an older one may run on where the newest has ended."""
        while job is not None and job.phase is Phase.ENDED:
            job = self.jobs.get(job.previous)
        return job

    def _update(self, job: Job, order: Order) -> Put | Refusal:
        if self._sure_of(order) > self._sure_of(job):
            return "longer-duration"
        if order.ledger and order.ledger == job.ledger:
            job.status = max(job.status, order.status)
        if self.settings.staged and job.stage:
            order = order._replace(need=job.need)
        if job.phase is Phase.HELD:
            return self._update_held(job, order)
        lane = Lane.of(job.band, order.priority, order.level, job.lane_need(order.need))
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

    def _update_held(self, job: Job, order: Order) -> Put:
        """Update a job that has no place; a better band counts when it comes back."""
        self._describe(job, order)
        if order.band >= job.band:
            return Put("updated", job.record, job.version)
        job.band = order.band
        self._place_anew(job, order, arrival=self._next())
        self.recent.note(order, self.settings, self.now)
        return Put("upgraded", job.record, job.version)

    def _describe(self, job: Job, order: Order) -> None:
        job.body, job.need, job.priority = order.body, order.need, order.priority
        job.level, job.elastic, job.duration = order.level, order.elastic, order.duration
        job.expires_at = order.expires_at
        job.attempt = job.unspent = 0

    def _sure_of(self, asked: Job | Order) -> int:
        """Give the time that nobody can cut: an elastic job is sure of the fastest cap only."""
        levels = self.settings.levels
        return levels[0].cap if asked.elastic else asked.duration or levels[asked.level - 1].cap

    def _place_anew(self, job: Job, order: Order, arrival: int) -> None:
        delay = self.recent.delay(order, self.settings, self.now)
        job.delay, job.recent = delay.length, delay.recent
        job.release, job.arrival = self.now + delay.length, arrival

    def _arrive(self, job: Job, order: Order, arrival: int) -> None:
        self._place_anew(job, order, arrival)
        job.own, job.blocked = not order.band.pooled, job.id in self.stops.values()
        job.lacking = self._lacks_space(job)
        if job.own:
            self.line.join_own(job)
        else:
            self.line.join(job, oldest_first=self.settings.order == "oldest-first")
            self.recent.note(order, self.settings, self.now)

    def remove(self, id: str, now: int, dice: bytes) -> None:
        """Delete all versions: out of line at once, or stopped; afterwards the id is unknown."""
        with self._verb(now, dice):
            versions = self.versions(id)
            for job in versions:
                self._not_frozen(job)
            for job in versions:
                if job.phase is Phase.WAITING:
                    self._leave(job)
                elif job.phase is Phase.RUNNING:
                    self._stop(job, "deleted")
                elif job.phase is Phase.HELD:
                    self.holds.drop(job)
                self._return_space(job)
                self._strike_out(job)
                self.unsaid.discard(job.record)
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
                elif job.phase is Phase.RUNNING:
                    self._log(job, self._stop(job, "cancelled"), "cancelled")
                self._end(job, "cancelled", message)

    def shorten(self, id: str, duration: int, now: int, dice: bytes) -> None:
        """Lower the duration of a waiting or running job; below the time already run it stops."""
        with self._verb(now, dice):
            job = next(self._versions(id))
            if job.phase is Phase.ENDED:
                raise AlreadyEnded
            if job.band is Band.INTERACTIVE:
                raise Interactive
            levels = self.settings.levels
            level = level_for(levels, duration)
            if level is None or duration > (job.duration or levels[-1 if job.elastic else job.level - 1].cap):
                raise LongerDuration
            if job.phase is Phase.RUNNING:
                self._shorten_run(job, level, duration)
            elif job.phase is Phase.WAITING and not job.elastic and level != job.level:
                self._leave(job)
                job.level, job.own = level, True
                self.line.join_own(job)
            job.duration = duration
            job.level = job.level if job.elastic else level

    def _shorten_run(self, job: Job, level: int, duration: int) -> None:
        worker, hold = self._hold_of(job)
        if not hold.stopping and duration < hold.duration:
            self._lower(worker, hold, level, duration, "time-limit")

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
            self.jobs[record] = job
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
        lost, ended = [], []
        me = self.floor.workers.get(worker)
        for number, result in enumerate(results):
            hold = self._held(worker, result.lease)
            if not hold or hold.stopping in SETTLED:
                lost.append(result.lease)
            if me and hold:
                self._unhand(me, hold)
                ended.append((number, hold, result))
        carried = []
        for number, hold, result in ended:
            if me and hold.stopping not in SETTLED:
                at = 2 * (number % 8)
                roll = dice + dice[at : at + 2]
                start = self._settle(me, self.jobs[hold.record], hold, result, roll)
                carried += [start] if start else []
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
        """Forget old jobs; those of a batch go with it."""
        self._sweep_batches(limit)
        old = sorted(
            (job.ended_at, job.record)
            for job in self.jobs.values()
            if job.phase is Phase.ENDED
            and not job.batch
            and job.ended_at <= self.now - self.settings.retention
        )[:limit]
        for _, record in old:
            self._forget(self.jobs[record])
        return len(old)
