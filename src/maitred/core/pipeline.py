"""How a job goes on: from stage to stage, after a failure, and after a hold.

A worker that ends a stage goes on with the next one at once if it can; otherwise the job waits for somebody
who serves it, with a place of its own. What fails for a while is tried again later; what failed for good
waits for an operator, and goes on where it stopped.
"""

from collections.abc import Sequence
from typing import NamedTuple

from maitred.core.batch import Batch, BatchState
from maitred.core.floor import Hold, Kind, Units, Worker
from maitred.core.job import Band, Finish, Held, HoldKind, Job, Phase, Start
from maitred.core.output import Part, progress_of
from maitred.core.seating import Seating
from maitred.errors import (
    AlreadyEnded,
    BatchReporting,
    Interactive,
    NotFailed,
    NotHeld,
    NotWaiting,
    UnknownBatch,
)


class Ending(NamedTuple):
    """How a run ended that the worker reported, the n-th of one call; its slot and units are back."""

    hold: Hold
    result: Finish
    number: int


class Pipeline(Seating):
    """The stages of jobs, retries and holds."""

    # ---------------------------------------------------------------- the end of a stage

    def _settle(self, worker: Worker, ending: Ending, dice: bytes) -> Start | None:
        """Take in how a run ended: the next stage, another try, or the end.

        Gives the start of the next stage if the worker goes on with it, with the dice as its token.
        """
        hold, result, number = ending
        job = self.jobs[hold.record]
        self._log(job, hold, result.code)
        self._take_in(job, result)
        self._say(job, result.said)
        if hold.kind is Kind.INTERACTIVE:
            self._end(job, result.code, result.message, result.result)
        elif result.code and result.transient and job.attempt < self.settings.attempts:
            at = 2 * (number % 8)
            self._back_off(job, result.code, result.message, int.from_bytes(dice[at : at + 2], "big"))
        elif result.code or job.stage == len(self.settings.stages):
            self._end(job, result.code, result.message, result.result)
            if result.status:
                self.unsaid.discard(job.record)
        else:
            return self._next_stage(worker, job, result, dice)
        return None

    def _add_to_end(self, worker: Worker, hold: Hold, result: Finish) -> None:
        """Add what a cancelled run had done to its record; how and when that ended stays as it is."""
        if self._is_run_of(worker.name, hold):
            job = self.jobs[hold.record]
            self._say(job, result.said)
            if not self.settings.staged:
                job.result = job.result or result.result

    def _take_in(self, job: Job, result: Finish) -> None:
        """Keep what a stage said of the job beside its end."""
        if result.priority is not None:
            job.priority = result.priority
        if result.space is not None:
            self.space.need(job, result.space)
        if result.identifiers is not None:
            job.identifiers = result.identifiers
        if result.status:
            job.status = result.status

    def _say(self, job: Job, parts: Sequence[Part]) -> None:
        """Keep what a run says; what it says of how far it is stands in the job too."""
        self.sayings.add(job.record, job.attempt, parts, self.now, self.settings.output_limit)
        progress = progress_of(parts)
        if progress is not None:
            job.progress = progress

    def _back_off(self, job: Job, code: str, message: str, roll: int) -> None:
        """Let a job wait before its next attempt: twice as long each time, half of it by the dice."""
        half = min(self.settings.most_backoff, self.settings.backoff << (job.attempt - 1)) // 2
        job.release = self.now + half + half * roll // 65536
        job.band = job.band if job.band.pooled else Band.SCHEDULED
        job.message = message
        self._go_on(job, code)

    def _next_stage(self, worker: Worker, job: Job, result: Finish, token: bytes) -> Start | None:
        """Move a job to its next stage: the worker carries it on at once, or it waits for another."""
        job.stage, job.attempt, job.unspent = job.stage + 1, 0, 0
        job.need, job.data, job.message = self.settings.need(job.stage), result.result, result.message
        free = [limit - used for limit, used in zip(self.floor.limits, self.floor.used, strict=True)]
        units = Units(free)
        if self._can_carry(worker, job, units):
            return self._start(job, worker, token, self.floor.start_class(units, job))
        self._go_on(job)
        return None

    def _go_on(self, job: Job, code: str = "") -> None:
        """Let a job wait that ran; with a code, for another try. An older version that would wait ends."""
        if self.newest[job.id] == job.record:
            if code:
                self._notify(job, "requeued", code)
            self._stand(job)
        else:
            self._supersede(job)

    def _can_carry(self, worker: Worker, job: Job, units: Units) -> bool:
        return (
            self.paused is None
            and worker.free > 0
            and job.need in worker.serves
            and not units.full(job.level)
            and not self.space.lacks(job)
            and not self.holds.reason(job)
            and job.id not in self.stops.values()
        )

    # ---------------------------------------------------------------- operators

    def retry(self, id: str, now: int, dice: bytes) -> None:
        """Let a failed job go on at the stage that failed, with a place of its own, now."""
        with self._verb(now, dice):
            job = next(self._versions(id))
            if job.band is Band.INTERACTIVE:
                raise Interactive
            if job.phase is not Phase.ENDED or not job.code:
                raise NotFailed
            self._not_frozen(job)
            self.outbox.keep_end(job)
            job.retries += 1
            job.attempt = job.unspent = 0
            job.code, job.message, job.result, job.ended_at = "", "", b"", 0
            job.band = Band.SCHEDULED if job.band is Band.FRONT else job.band
            job.release = self.now
            self._fit_into_stages(job)
            if job.expires_at <= self.now:
                job.expires_at = 0
            self._notify(job, "requeued", "retried")
            self._stand(job)
            self._set_deadline(job)

    def _fit_into_stages(self, job: Job) -> None:
        """Let a job that ended under other stages go on at one that the queue has now."""
        job.stage = min(job.stage, len(self.settings.stages))
        if self.settings.staged:
            job.need = self.settings.need(max(job.stage, 1))

    def _not_frozen(self, job: Job) -> None:
        batch = self.batches.all.get(job.batch)
        if batch and batch.frozen:
            raise BatchReporting

    def prioritise(self, id: str, priority: int, now: int, dice: bytes) -> None:
        """Give a waiting job another priority, and with it a place of its own."""
        with self._verb(now, dice):
            job = next(self._versions(id))
            if job.phase not in (Phase.WAITING, Phase.HELD):
                raise NotWaiting
            if job.phase is Phase.HELD or not job.band.pooled or priority == job.priority:
                job.priority = priority
                return
            self._leave(job)
            job.priority, job.own = priority, True
            self.line.join_own(job)

    def hold(self, held: Held, now: int, dice: bytes) -> None:
        """Hold one job, or all that belong together, from now on."""
        with self._verb(now, dice):
            held = held._replace(at=self.now)
            if held.kind == "job":
                self._hold_one(held)
            else:
                if held.kind == "batch" and not self._only_named(held.name):
                    self._hold_batch(held.name)
                self.holds.raise_flag(held)

    def _hold_one(self, held: Held) -> None:
        job = next(self._versions(held.name))
        if job.phase is Phase.ENDED:
            raise AlreadyEnded
        if job.band is Band.INTERACTIVE:
            raise Interactive
        job.hold = held
        if job.phase is Phase.WAITING:
            self._leave(job)
            self._set_held(job, "job")

    def _hold_batch(self, id: str) -> None:
        self._batch(id).move(BatchState.HELD, self.now)

    def unhold(self, kind: HoldKind, name: str, now: int, dice: bytes) -> None:
        """Take a hold away; whoever has no other comes back, some at once and the rest step by step."""
        with self._verb(now, dice):
            if kind == "job":
                job = next(self._versions(name))
                if job.hold is None:
                    raise NotHeld
                job.hold = None
                if job.phase is Phase.HELD:
                    self.holds.drop(job)
                    self._stand(job)
                return
            batch = self._batch(name) if kind == "batch" and not self._only_named(name) else None
            lowered = self.holds.lower_flag(kind, name)
            if batch:
                if not lowered:
                    raise NotHeld
                self._resume_batch(batch)
            self._let_return()

    def _resume_batch(self, batch: Batch) -> None:
        begun = batch.sealed or batch.rows
        batch.move(BatchState.PROCESSING if begun else BatchState.PENDING, self.now)

    def _only_named(self, id: str) -> bool:
        """Tell whether a batch is only a name here, since the ledger is a tree elsewhere."""
        return bool(self.settings.ledger) and id not in self.batches.all

    def _batch(self, id: str) -> Batch:
        batch = self.batches.all.get(id)
        if batch is None:
            raise UnknownBatch(self.queue, id)
        return batch
