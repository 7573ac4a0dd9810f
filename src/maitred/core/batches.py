"""All batches of a queue: who has which, what is to be done for them, and how they follow their jobs."""

from collections import Counter
from collections.abc import Mapping

from maitred.core.batch import (
    BUCKETS,
    UNFINISHED,
    Batch,
    BatchOrder,
    BatchPut,
    BatchState,
    Errand,
    Row,
    batch_id,
    bucket_of,
)
from maitred.core.job import Job
from maitred.errors import LockLost, OtherSubmitter


class Batches:
    """The batches of one queue by id, in the order in which they came, and what is left of deleted ones."""

    def __init__(self) -> None:
        """Begin with none."""
        self.all: dict[str, Batch] = {}
        self.made = 0
        self.by_external: dict[str, str] = {}
        self.trash: dict[str, dict[str, Row]] = {}

    def create(self, order: BatchOrder, now: int) -> BatchPut:
        """Make a batch, or give the one that the submitter made under this external id."""
        known = self.by_external.get(order.external_id) if order.external_id else None
        if known is not None:
            if self.all[known].submitter != order.submitter:
                raise OtherSubmitter
            return BatchPut(known, created=False)
        id = batch_id(self.made)
        self.made += 1
        batch = Batch(id, order.external_id, order.submitter, order.profile, order.submission, now, now)
        batch.expanding, batch.sealing = order.expanding, order.sealed
        batch.sealed, batch.aged_at = order.sealed and not order.expanding, now
        self.all[id] = batch
        if order.external_id:
            self.by_external[order.external_id] = id
        return BatchPut(id, created=True)

    def lock(self, owner: str, token: bytes, now: int, lease: int) -> Errand | None:
        """Lock the oldest batch that has work and no live lock; a report is sent after all other work."""
        open_ = [batch for batch in self.all.values() if not batch.locked(now)]
        chosen = next((batch for batch in open_ if batch.work(now) in ("expand", "report")), None)
        if chosen is None:
            sending = [batch for batch in open_ if batch.work(now) == "send"]
            chosen = min(sending, key=lambda batch: (batch.try_at, batch.id), default=None)
        work = chosen.work(now) if chosen else None
        if chosen is None or work is None:
            return None
        chosen.owner, chosen.token, chosen.locked_until = owner, token, now + lease
        return Errand(chosen, work)

    def locked_by(self, id: str, token: bytes) -> Batch:
        """Give a batch to the owner of its lock; LockLost to anybody else."""
        batch = self.all.get(id)
        if batch is None or not token or batch.token != token:
            raise LockLost
        return batch

    def settle(self, jobs: Mapping[int, Job], now: int) -> None:
        """Let every batch follow its jobs: count them, begin, and begin its report when all have ended."""
        if not self.all:
            return
        for batch in self.all.values():
            found = Counter(bucket_of(jobs[row.record]) for row in batch.rows.values() if row.record)
            batch.counts = {bucket: found[bucket] for bucket in BUCKETS}
            batch.counts["deleted"] = sum(not row.record for row in batch.rows.values())
            begun = batch.sealed or bool(batch.rows)
            if batch.state is BatchState.PENDING and begun:
                batch.move(BatchState.PROCESSING, now)
            ended = batch.sealed and not any(batch.counts[bucket] for bucket in UNFINISHED)
            if batch.state is BatchState.PROCESSING and ended:
                batch.move(BatchState.REPORTING, now)

    def remove(self, batch: Batch) -> None:
        """Make a batch unknown; what is left of its jobs goes step by step."""
        del self.all[batch.id]
        if batch.external_id:
            del self.by_external[batch.external_id]
        if batch.rows:
            self.trash[batch.id] = batch.rows
