"""The Ledger's verbs of the reference store: each is the core's own, with the clock and the dice."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from maitred.core.batch import Batch, BatchOrder, BatchPut, BatchState, Errand, RowView
from maitred.core.house import House
from maitred.core.job import Held, HoldKind, Job, Lease, Phase, Restored, TakenUp, View
from maitred.core.notices import Delivery, NoticeErrand
from maitred.errors import UnknownBatch
from maitred.store.port import BatchPage, Clock, Dice, HeldPage, RowPage, Unsaid


class LedgerVerbs(ABC):
    """The part of a queue in memory that the Ledger adds."""

    queue: str
    _clock: Clock
    _dice: Dice

    @property
    @abstractmethod
    def _house(self) -> House:
        """The queue; UnknownQueue if nobody configured it."""

    @abstractmethod
    def _ring(self, *, answered: bool = False) -> None:
        """Tell whoever waits that something may have changed."""

    @abstractmethod
    def _view(self, job: Job) -> View:
        """Show a job."""

    async def prioritise(self, id: str, priority: int) -> None:
        """Give a waiting job another priority."""
        self._house.prioritise(id, priority, self._clock(), self._dice())
        self._ring()

    async def retry(self, id: str) -> None:
        """Let a failed job go on where it failed."""
        self._house.retry(id, self._clock(), self._dice())
        self._ring()

    async def hold(self, kind: HoldKind, name: str, by: str, reason: str) -> None:
        """Hold a job, or many."""
        self._house.hold(Held(kind, name, by, reason, 0), self._clock(), self._dice())
        self._ring()

    async def unhold(self, kind: HoldKind, name: str) -> None:
        """Take a hold away."""
        self._house.unhold(kind, name, self._clock(), self._dice())
        self._ring()

    async def create_batch(self, order: BatchOrder) -> BatchPut:
        """Make a batch, or give the known one."""
        made = self._house.create_batch(order, self._clock(), self._dice())
        self._ring()
        return made

    async def seal_batch(self, id: str, *, token: bytes = b"", fault: str = "") -> None:
        """Close a batch."""
        self._house.seal_batch(id, token, fault, self._clock(), self._dice())
        self._ring()

    async def lock_batch(self, owner: str, token: bytes) -> Errand | None:
        """Lock the oldest batch that has work."""
        errand = self._house.lock_batch(owner, token, self._clock(), self._dice())
        self._ring()
        if errand is None:
            return None
        batch = _without_rows(errand.batch)
        return errand._replace(batch=batch if errand.work == "send" else replace(batch, report=b""))

    async def keep_batch(self, id: str, token: bytes) -> None:
        """Keep a lock."""
        self._house.keep_batch(id, token, self._clock(), self._dice())
        self._ring()

    async def unlock_batch(self, id: str, token: bytes) -> None:
        """Give a lock up."""
        self._house.unlock_batch(id, token, self._clock(), self._dice())
        self._ring()

    async def mark_rows(self, id: str, token: bytes, reported: Sequence[tuple[str, str]]) -> None:
        """Note what is being reported of some jobs."""
        self._house.mark_rows(id, token, list(reported), self._clock(), self._dice())
        self._ring()

    async def report_batch(self, id: str, token: bytes, report: bytes, *, send: bool) -> BatchState:
        """Store a report and end the batch."""
        state = self._house.report_batch(id, token, report, self._clock(), self._dice(), send=send)
        self._ring()
        return state

    async def sent_batch(self, id: str, token: bytes, try_again_in: int | None) -> None:
        """Note what became of sending a report."""
        self._house.sent_batch(id, token, try_again_in, self._clock(), self._dice())
        self._ring()

    async def update_batch(self, id: str) -> None:
        """Ask for an update report."""
        self._house.update_batch(id, self._clock(), self._dice())
        self._ring()

    async def remove_batch(self, id: str) -> None:
        """Delete a batch with its jobs."""
        self._house.remove_batch(id, self._clock(), self._dice())
        self._ring()

    async def batch(self, id: str) -> Batch | None:
        """Show a batch."""
        found = self._house.batches.all.get(id)
        return _without_rows(found) if found else None

    async def batches(
        self,
        state: str | None = None,
        external_id: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> BatchPage:
        """Show batches, newest first."""
        found = [
            batch
            for batch in reversed(self._house.batches.all.values())
            if state in (None, batch.state) and external_id in (None, batch.external_id)
        ]
        rest = [batch for batch in found if cursor is None or batch.id < cursor]
        page = [replace(_without_rows(batch), report=b"") for batch in rest[:limit]]
        total = len(found) if state is None else None
        return BatchPage(page, page[-1].id if len(rest) > limit else None, total)

    async def batch_rows(self, id: str, after: int, limit: int) -> RowPage:
        """Show the jobs of a batch."""
        house = self._house
        batch = house.batches.all.get(id)
        if batch is None:
            raise UnknownBatch(self.queue, id)
        rows = list(batch.rows.items())[after : after + limit]
        views = []
        for job_id, row in rows:
            job = house.jobs.get(row.record)
            state = job.state(house.settings.stages) if job else "deleted"
            views.append(RowView(job_id, row.label, state, job.message if job else "", row.reported))
        end = after + len(rows)
        return RowPage(views, end if end < len(batch.rows) else None)

    async def restore(self, jobs: Sequence[Job]) -> list[Restored]:
        """Take in jobs as the ledger's tree has them."""
        answers = self._house.restore(jobs, self._clock(), self._dice())
        self._ring()
        return answers

    async def note_status(self, worker: str, taken: Sequence[TakenUp]) -> list[Lease]:
        """Note what a worker took up in the tree."""
        lost = self._house.note_status(worker, taken, self._clock(), self._dice())
        self._ring()
        return lost

    async def unsaid(self, limit: int) -> Unsaid:
        """Show what the tree has to hear."""
        house = self._house
        views = [self._view(house.jobs[record]) for record in sorted(house.unsaid)[:limit]]
        return Unsaid(views, house.gone[:limit])

    async def said(self, record: int, state: str, status: int) -> None:
        """Note that the tree has heard of a state."""
        self._house.said(record, state, status, self._clock(), self._dice())
        self._ring()

    async def forgotten(self, ledger_ids: Sequence[str]) -> None:
        """Note that the tree has forgotten jobs."""
        self._house.forgotten(ledger_ids, self._clock(), self._dice())
        self._ring()

    async def attend(self, ids: Sequence[str]) -> None:
        """Note that somebody watches jobs."""
        if ids:
            self._house.attend(ids, self._clock(), self._dice())
            self._ring()

    async def lock_notices(self, owner: str, token: bytes, limit: int) -> list[NoticeErrand]:
        """Lock notices that are due."""
        house = self._house
        locked = house.lock_notices(owner, token, limit, self._clock(), self._dice())
        self._ring()
        return [NoticeErrand(self._view(house.jobs[record]), notice) for record, notice in locked]

    async def told_notice(self, record: int, number: int, token: bytes, delivery: Delivery) -> None:
        """Log a try at a notice."""
        tried = delivery.shortened()._replace(number=number)
        try:
            self._house.told_notice(record, token, tried, self._clock(), self._dice())
        finally:
            self._ring()

    async def deliveries(self, id: str, version: int | None = None) -> list[Delivery] | None:
        """Show the last tries at the notices of a job."""
        house = self._house
        for job in house.versions(id) if id in house.newest else []:
            if version in (None, job.version):
                return list(house.outbox.log.get(job.record, []))
        return None

    async def held(self, offset: int, limit: int) -> HeldPage:
        """Show the jobs that are held."""
        jobs = [job for job in self._house.jobs.values() if job.phase is Phase.HELD]
        jobs.sort(key=lambda job: job.record)
        return HeldPage([self._view(job) for job in jobs[offset : offset + limit]], len(jobs))


def _without_rows(batch: Batch) -> Batch:
    return replace(batch, counts=dict(batch.counts), rows={})
