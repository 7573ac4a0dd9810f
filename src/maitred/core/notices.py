"""What the submitter of a job is told at its response address: the outbox, and the log of each try.

A job that has such an address gets a notice with each start, each return to the line and its end. They are
told in order, all versions of a job together: the next one when the one before has arrived or was given up.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

from maitred.core.job import Job, View
from maitred.core.settings import SECOND
from maitred.errors import LockLost

NoticeKind = Literal["started", "requeued", "ended"]

# More than this wait for one job only if they tell of ends; and so many tries are kept of a version.
MOST_NOTICES = 100
DELIVERIES_KEPT = 100
# Longer than a try takes, whatever the receiver does; shorter than one waits for a server that died.
LOCKED_FOR = 20 * SECOND
SAID_CHARACTERS = 500
# After this an end is looked at again whose run is still being stopped: it may have a result by then.
STOP_PATIENCE = SECOND // 5


class Notice(NamedTuple):
    """Something to be told, as it was at that moment. `number` is unique in the queue and never changes.

    `message` and `result` are those of an end from which the job has gone on since.
    """

    number: int
    kind: NoticeKind
    at: int
    attempt: int
    stage: int
    worker: str
    code: str
    tries: int = 0
    message: str = ""
    result: bytes = b""


class Delivery(NamedTuple):
    """One try at a notice: when, how it ended (`sent`, `again`, `refused`), and what was answered."""

    number: int
    kind: NoticeKind
    at: int
    tries: int
    answer: Literal["sent", "again", "refused"]
    said: str
    took: int
    again_at: int = 0

    def shortened(self) -> "Delivery":
        """Keep of a long answer its beginning."""
        return self._replace(said=self.said[:SAID_CHARACTERS])


class NoticeErrand(NamedTuple):
    """A notice that a server has locked and is to tell, and the job as it is now."""

    view: View
    notice: Notice


class Pending(NamedTuple):
    """A notice in the outbox, and the record that it is about."""

    record: int
    notice: Notice


class NoticeLock(NamedTuple):
    """Who tells the first notice of a job now; the token is empty once a try has ended."""

    owner: str
    token: bytes


class Outbox:
    """What the jobs of one queue have to tell, by job id, and how telling it went, by record.

    The first notice of a job is due at a moment: at once, when it is tried again, or when its lock ends.
    """

    def __init__(self) -> None:
        """Begin with nothing to tell."""
        self.pending: dict[str, list[Pending]] = {}
        self.due: dict[str, int] = {}
        self.locks: dict[str, NoticeLock] = {}
        self.log: dict[int, list[Delivery]] = {}

    def add(self, job: Job, notice: Notice) -> None:
        """Add a notice; one too many pushes the oldest out that is neither an end nor being told."""
        waiting = self.pending.setdefault(job.id, [])
        waiting.append(Pending(job.record, notice))
        self.due.setdefault(job.id, notice.at)
        if len(waiting) > MOST_NOTICES:
            for at, each in enumerate(waiting[1:], 1):
                if each.notice.kind != "ended":
                    del waiting[at]
                    break

    def keep_end(self, job: Job) -> None:
        """Let a notice of the job's end have what the record will lose when the job goes on."""
        waiting = self.pending.get(job.id, [])
        for index, (record, notice) in enumerate(waiting):
            if (record, notice.kind, notice.at) == (job.record, "ended", job.ended_at):
                kept = notice._replace(message=job.message, result=job.result)
                waiting[index] = Pending(record, kept)

    def untold(self, job: Job) -> int:
        """Count what is still to be told of this version."""
        return sum(each.record == job.record for each in self.pending.get(job.id, ()))

    def lock(
        self, owner: str, token: bytes, now: int, limit: int, still_stops: Callable[[int], bool]
    ) -> list[Pending]:
        """Lock the first notices that are due, the longest due first; ends whose runs go on are put off."""
        ids = sorted((at, id.encode("utf-8", "surrogateescape"), id) for id, at in self.due.items())
        found = []
        for _, _, id in [each for each in ids if each[0] <= now][:limit]:
            first = self.pending[id][0]
            if first.notice.kind == "ended" and still_stops(first.record):
                self.due[id] = now + STOP_PATIENCE
                continue
            self.due[id], self.locks[id] = now + LOCKED_FOR, NoticeLock(owner, token)
            found.append(first)
        return found

    def told(self, job: Job, token: bytes, delivery: Delivery, now: int) -> None:
        """Log a try under its lock; then it is tried again, or the next notice is due."""
        lock, waiting = self.locks.get(job.id), self.pending.get(job.id, [])
        first = waiting[0] if waiting else None
        if not token or not lock or lock.token != token:
            raise LockLost
        if first is None or (first.record, first.notice.number) != (job.record, delivery.number):
            raise LockLost
        self.log[job.record] = [*self.log.get(job.record, []), delivery][-DELIVERIES_KEPT:]
        if delivery.again_at:
            waiting[0] = first._replace(notice=first.notice._replace(tries=first.notice.tries + 1))
            self.locks[job.id], self.due[job.id] = NoticeLock("", b""), delivery.again_at
            return
        del waiting[0], self.locks[job.id]
        self.due[job.id] = now
        if not waiting:
            del self.pending[job.id], self.due[job.id]

    def drop(self, id: str) -> None:
        """Tell nothing more of a job that was deleted."""
        for kept in (self.pending, self.due, self.locks):
            kept.pop(id, None)
