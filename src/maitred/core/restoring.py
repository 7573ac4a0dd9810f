"""A queue whose ledger is a tree elsewhere: the line is an index of it, and follows it.

What this queue decides alone (an expiry, a hold that is met, attempts that are spent) is noted until the tree
has heard of it. What the tree says is taken in with the version of the state that it came from; what is older
than what is known here is passed over, so the line can be rebuilt while it is in use.
"""

from collections.abc import Sequence
from dataclasses import replace

from maitred.core.job import Held, Job, Lease, Phase, Restored, TakenUp
from maitred.core.ledger import Ledger

# What is this queue's own of a job that the tree has changed.
KEPT = (
    "record",
    "previous",
    "version",
    "created_at",
    "submitter",
    "timeline",
    "ledger",
    "id",
    "progress",
    "artifacts",
)


class Restoring(Ledger):
    """What a queue does to agree with its ledger's tree."""

    def restore(self, entries: Sequence[Job], now: int, dice: bytes) -> list[Restored]:
        """Take in jobs as the tree has them; each has its ledger id, and the version of its state there."""
        with self._verb(now, dice):
            return [self._restore(entry) for entry in entries]

    def _restore(self, entry: Job) -> Restored:
        newest = self._newest(entry.id)
        versions = self.versions(entry.id) if newest else []
        known = next((job for job in versions if job.ledger == entry.ledger), None)
        if known is None:
            if newest and newest.version >= entry.version:
                return "ignored"
            if newest and newest.phase in (Phase.WAITING, Phase.HELD):
                self._take_away(newest)
                self._supersede(newest)
            previous = newest.record if newest else 0
            job = replace(entry, record=self._next(), previous=previous, progress=b"", artifacts=())
            self.jobs[job.record] = job
            self.newest[job.id] = job.record
            self._put_in_place(job, before=Phase.ENDED if job.phase is Phase.ENDED else Phase.WAITING)
            return "made"
        if known.status >= entry.status:
            return "ignored"
        before = known.phase
        if before is Phase.ENDED:
            self.outbox.keep_end(known)
        self._take_away(known)
        for name in Job.__slots__:
            if name not in KEPT:
                setattr(known, name, getattr(entry, name))
        self._put_in_place(known, before)
        return "changed"

    def _take_away(self, job: Job) -> None:
        """Take a job out of wherever it is here; a run of it is stopped, since it is not ours any more."""
        if job.phase is Phase.WAITING:
            self._leave(job)
        elif job.phase is Phase.HELD:
            self.holds.drop(job)
        elif job.phase is Phase.RUNNING:
            self._log(job, self._stop(job, "moved"), "moved")
        self.space.give_back(job)

    def _put_in_place(self, job: Job, before: Phase) -> None:
        """Let a job stand as the tree has it; it is not told so again, unless more is decided here.

        Its submitter is told what is news after the phase in which it was `before`.
        """
        wanted = job.phase
        if wanted is not Phase.ENDED:
            job.code, job.result = "", b""
        job.own, job.blocked, job.lacking, job.provisioned, job.worker = False, False, False, False, ""
        if wanted is Phase.ENDED:
            self._end(job, job.code, job.message, job.result, known=before is Phase.ENDED)
        elif self.newest[job.id] != job.record:
            self._supersede(job)
        elif wanted is Phase.HELD:
            self._back_in_line(job, before)
            if not self.holds.reason(job):
                job.hold = Held("job", job.id, "", "", self.now)
            self._set_held(job, self.holds.reason(job) or "job")
        else:
            job.phase = Phase.WAITING
            self._back_in_line(job, before)
            self._stand(job)
        self._set_deadline(job)
        if job.phase is wanted:
            self.unsaid.discard(job.record)

    def _back_in_line(self, job: Job, before: Phase) -> None:
        if before is Phase.RUNNING:
            self._notify(job, "requeued", "moved")
        elif before is Phase.ENDED:
            self._notify(job, "requeued", "retried")

    def note_status(self, worker: str, taken: Sequence[TakenUp], now: int, dice: bytes) -> list[Lease]:
        """Note the versions of states that a worker made by taking jobs up; give the leases that are lost."""
        lost = []
        with self._verb(now, dice):
            for lease, status in taken:
                hold = self._held(worker, lease)
                if hold is None or lease.record not in self.jobs:
                    lost.append(lease)
                else:
                    self.jobs[lease.record].status = max(self.jobs[lease.record].status, status)
        return lost

    def said(self, record: int, state: str, status: int, now: int, dice: bytes) -> None:
        """Note that the tree has heard of a job's state, unless that has changed meanwhile."""
        with self._verb(now, dice):
            job = self.jobs.get(record)
            if job is None:
                return
            job.status = max(job.status, status)
            if job.state(self.settings.stages) == state:
                self.unsaid.discard(record)

    def forgotten(self, ledger_ids: Sequence[str], now: int, dice: bytes) -> None:
        """Note that the tree has forgotten jobs that were swept here."""
        with self._verb(now, dice):
            self.gone = [id for id in self.gone if id not in ledger_ids]
