"""The verbs on batches: submitted, filled, sealed, reported, and gone in the end.

A batch's jobs are its rows. A row stays when its job is deleted, so that the report can name it. What servers
do for a batch (expand, report, send) they do under its lock, and every such write carries the lock's token.
"""

from maitred.core.batch import Batch, BatchOrder, BatchPut, BatchState, Errand, Row
from maitred.core.job import Job, Order, Phase, Put, Refusal
from maitred.core.pipeline import Pipeline
from maitred.errors import BatchReporting, BatchSealed, BatchUnfinished, LockLost

BATCHES_PER_SWEEP = 10
ROWS_PER_STEP = 200


class Ledger(Pipeline):
    """The batches of one queue."""

    # ---------------------------------------------------------------- filling

    def create_batch(self, order: BatchOrder, now: int, dice: bytes) -> BatchPut:
        """Make a batch, or give the submitter's with that external id."""
        with self._verb(now, dice):
            return self.batches.create(order, self.now)

    def _known_row(self, order: Order) -> Put | None:
        """Pass over a key that the batch has, where this may only create."""
        batch = self.batches.all.get(order.batch) if order.only_new else None
        row = batch.rows.get(order.id) if batch else None
        if row is None:
            return None
        job = self.jobs.get(row.record)
        return Put("known", row.record, job.version if job else 0)

    def _not_for_batch(self, order: Order, old: Job | None, live: Job | None) -> Refusal | None:
        """Tell what forbids this PUT because of the batch that it names, or that its job is in."""
        mine = self.batches.all.get(old.batch) if old else None
        if mine and mine.frozen:
            return "reporting"
        if not order.batch or order.ledger:
            # Where the ledger is a tree, the batch is there, and is only a name here.
            return None
        batch = self.batches.all.get(order.batch)
        if batch is None:
            return "no-batch"
        if order.token and batch.token != order.token:
            return "lock-lost"
        if live:
            return None if live.batch == order.batch and not order.only_new else "other-batch"
        # Once it is to be sealed, only the server that expands it adds jobs.
        return "sealed" if batch.sealed or (batch.sealing and not order.token) else None

    def _enlist(self, job: Job, order: Order, old: Job | None) -> None:
        """Put a new job into its batch; a new version stays in that of the last until it is reported."""
        before = self.batches.all.get(old.batch) if old else None
        stays = before is not None and not before.reported
        batch = self.batches.all.get(order.batch) or (before if stays else None)
        if order.ledger:
            job.batch = order.batch
            return
        if batch is None:
            return
        row = batch.rows.get(job.id)
        job.batch = batch.id
        batch.rows[job.id] = Row(job.record, order.label or (row.label if row else b""))
        batch.modified_at = batch.aged_at = self.now

    def seal_batch(self, id: str, token: bytes, fault: str, now: int, dice: bytes) -> None:
        """Close a batch, or end its expansion and close it if that was asked for."""
        with self._verb(now, dice):
            batch = self.batches.locked_by(id, token) if token else self._batch(id)
            if batch.sealed:
                raise BatchSealed
            batch.modified_at = batch.aged_at = self.now
            if token:
                batch.expanding, batch.fault = False, fault
                batch.sealed = batch.sealing or bool(fault)
            else:
                batch.sealing, batch.sealed = True, not batch.expanding

    # ---------------------------------------------------------------- servers

    def lock_batch(self, owner: str, token: bytes, now: int, dice: bytes) -> Errand | None:
        """Lock the oldest batch that has work."""
        with self._verb(now, dice):
            return self.batches.lock(owner, token, self.now, self.settings.lease)

    def keep_batch(self, id: str, token: bytes, now: int, dice: bytes) -> None:
        """Keep a lock."""
        with self._verb(now, dice):
            self.batches.locked_by(id, token).locked_until = self.now + self.settings.lease

    def unlock_batch(self, id: str, token: bytes, now: int, dice: bytes) -> None:
        """Give a lock up."""
        with self._verb(now, dice):
            try:
                batch = self.batches.locked_by(id, token)
            except LockLost:
                return
            batch.owner, batch.token, batch.locked_until = "", b"", 0

    def mark_rows(
        self, id: str, token: bytes, reported: list[tuple[str, str]], now: int, dice: bytes
    ) -> None:
        """Note the state in which each of these jobs is being reported."""
        with self._verb(now, dice):
            rows = self.batches.locked_by(id, token).rows
            for job, state in reported:
                if job in rows:
                    rows[job] = rows[job]._replace(reported=state)

    def report_batch(
        self, id: str, token: bytes, report: bytes, now: int, dice: bytes, *, send: bool
    ) -> BatchState:
        """Store a report and end the batch as its jobs did."""
        with self._verb(now, dice):
            batch = self.batches.locked_by(id, token)
            if batch.state is BatchState.UPDATE_REPORTING and batch.unfinished:
                raise BatchUnfinished
            batch.move(batch.verdict(), self.now)
            batch.aged_at = self.now
            batch.report, batch.sequence = report, batch.sequence + 1
            batch.unsent, batch.tries, batch.try_at = send, 0, self.now if send else 0
            return batch.state

    def sent_batch(self, id: str, token: bytes, try_again_in: int | None, now: int, dice: bytes) -> None:
        """Note that the last report was delivered or given up, or when to try again."""
        with self._verb(now, dice):
            batch = self.batches.locked_by(id, token)
            batch.tries += 1
            batch.unsent = try_again_in is not None
            batch.try_at = 0 if try_again_in is None else self.now + try_again_in

    # ---------------------------------------------------------------- operators

    def update_batch(self, id: str, now: int, dice: bytes) -> None:
        """Ask for an update report."""
        with self._verb(now, dice):
            batch = self._batch(id)
            batch.move(BatchState.UPDATE_REPORTING, self.now)
            batch.aged_at = self.now

    def remove_batch(self, id: str, now: int, dice: bytes) -> None:
        """Delete a batch whose jobs have all ended, with its jobs."""
        with self._verb(now, dice):
            batch = self._batch(id)
            if batch.unfinished or batch.expanding:
                raise BatchUnfinished
            if batch.frozen:
                raise BatchReporting
            self._discard(batch)
            self._empty_trash(ROWS_PER_STEP)

    def _discard(self, batch: Batch) -> None:
        self.holds.lower_flag("batch", batch.id)
        self.batches.remove(batch)

    def _strike_out(self, job: Job) -> None:
        """Keep the name of a deleted job in its batch."""
        batch = self.batches.all.get(job.batch)
        row = batch.rows.get(job.id) if batch else None
        if batch and row and row.record == job.record:
            batch.rows[job.id] = row._replace(record=0)

    # ---------------------------------------------------------------- time

    def _sweep_batches(self, limit: int) -> None:
        """Seal what was left open for long, forget what was reported long ago, and empty the trash."""
        self._empty_trash(limit)
        old = sorted(
            (batch.aged_at, batch.id)
            for batch in self.batches.all.values()
            if batch.aged_at <= self.now - self.settings.retention
        )[:BATCHES_PER_SWEEP]
        for _, id in old:
            batch = self.batches.all[id]
            batch.aged_at = self.now
            if not batch.sealed and not batch.expanding:
                batch.sealed, batch.modified_at = True, self.now
            elif batch.reported and not batch.unfinished and not batch.frozen and not batch.unsent:
                self._discard(batch)

    def _empty_trash(self, most: int) -> None:
        """Forget the jobs of deleted batches, some in each step."""
        while self.batches.trash and most > 0:
            id, rows = next(iter(self.batches.trash.items()))
            for job in list(rows)[:most]:
                del rows[job]
                most -= 1
                for version in list(self._kept_versions(job)):
                    if version.batch != id:
                        continue
                    if version.phase is Phase.ENDED and not self.outbox.untold(version):
                        self._forget(version)
                    else:
                        version.batch = ""
            if not rows:
                del self.batches.trash[id]

    def _kept_versions(self, id: str) -> list[Job]:
        return self.versions(id) if id in self.newest else []

    def _forget(self, job: Job) -> None:
        """Take an ended version out of its job's chain of versions, and drop its record."""
        del self.jobs[job.record]
        self.sayings.forget(job.record)
        self.unsaid.discard(job.record)
        self.outbox.log.pop(job.record, None)
        if job.ledger:
            self.gone.append(job.ledger)
        older = job.previous in self.jobs
        if self.newest[job.id] == job.record:
            if older:
                self.newest[job.id] = job.previous
            else:
                del self.newest[job.id]
        for newer in self.jobs.values():
            if older and newer.previous == job.record:
                newer.previous = job.previous
