"""The state of one queue, and the steps that its verbs are made of.

A verb first catches up with the clock: what expired in line ends, and what a lost worker held comes back. At
its end whoever can be seated is seated, in line order. In between it is made of the small steps here: a job
leaves its place, goes to the front, ends, is logged.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from maitred.core.delay import Recent
from maitred.core.floor import Floor, Hold, Worker
from maitred.core.job import (
    Band,
    Job,
    Lease,
    Message,
    Moment,
    Pause,
    Phase,
    Place,
    Run,
    Shift,
    Start,
    Stop,
    Submitter,
)
from maitred.core.line import Line
from maitred.core.settings import Settings
from maitred.errors import UnknownJob

STARTS_PER_CYCLE = 256
EXPIRIES_PER_STEP = 100
WORKERS_PER_STEP = 4


class Seating:
    """What one queue keeps: its records, its Line and its Floor."""

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
