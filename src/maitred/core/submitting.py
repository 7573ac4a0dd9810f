"""What submitters do: create and update jobs, delete, cancel and shorten them.

A PUT makes a job, replaces the body of one that waits or is held, or queues the next version of one that
runs.
"""

from collections.abc import Sequence

from maitred.core.classes import level_for
from maitred.core.job import (
    COMMAND,
    Band,
    Job,
    Lane,
    Order,
    Outcome,
    Phase,
    Put,
    Refusal,
)
from maitred.core.restoring import Restoring
from maitred.core.stages import STAGE
from maitred.errors import (
    AlreadyEnded,
    Interactive,
    LongerDuration,
)


class Submitting(Restoring):
    """The verbs of submitters on one queue."""

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
        """Pass over a job of the tree that is here, or another that waits for its key; news of it counts."""
        versions = self.versions(order.id) if order.ledger and order.id in self.newest else []
        waits = bool(versions) and versions[0].phase in (Phase.WAITING, Phase.HELD)
        other = versions[0] if waits and versions[0].ledger else None
        known = next((job for job in versions if job.ledger == order.ledger), other)
        if known is None:
            return None
        news = known.ledger == order.ledger and order.status > known.status
        return None if waits and known is versions[0] and news else Put("known", known.record, known.version)

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
            job.status = order.status
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
        job.callback, job.abandon = order.callback, order.abandon
        job.attempt = job.unspent = 0
        self._set_deadline(job)

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
        job.lacking = self.space.lacks(job)
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
                self.space.give_back(job)
                self._strike_out(job)
                self.unsaid.discard(job.record)
                self.sayings.forget(job.record)
                self.deadlines.pop(job.record, None)
                self.outbox.log.pop(job.record, None)
                del self.jobs[job.record]
            self.outbox.drop(id)
            del self.newest[id]

    def cancel(self, id: str, message: str, now: int, dice: bytes) -> None:
        """End all versions that have not ended, as `failed` with code `cancelled`."""
        with self._verb(now, dice):
            live = [job for job in self._versions(id) if job.phase is not Phase.ENDED]
            if not live:
                raise AlreadyEnded
            for job in live:
                self._cancel(job, "cancelled", message)

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
