"""The state of one queue, and the steps that its verbs are made of.

A verb first catches up with the clock: what expired in line ends, and what a lost worker held comes back. At
its end whoever can be seated is seated, in line order. In between it is made of the small steps here: a job
leaves its place, goes to the front, ends, is logged.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from maitred.core.batches import Batches
from maitred.core.delay import Recent
from maitred.core.floor import SETTLED, Floor, Hold, Kind, Units, Worker
from maitred.core.gate import Gate
from maitred.core.holds import Holds
from maitred.core.job import (
    Band,
    Job,
    Lease,
    Lower,
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
from maitred.core.notices import Notice, NoticeKind, Outbox
from maitred.core.sayings import Sayings
from maitred.core.settings import SECOND, Settings
from maitred.core.space import Space
from maitred.errors import UnknownJob

STARTS_PER_CYCLE = 256
EXPIRIES_PER_STEP = 100
RETURNS_PER_STEP = 100
WORKERS_PER_STEP = 4


class Seating:
    """What one queue keeps: its records, its Line and its Floor."""

    def __init__(self, queue: str, settings: Settings) -> None:
        """Open an empty queue."""
        self.queue = queue
        self.now = 0
        self.seq = 0
        self.paused: Pause | None = None
        self.more = False
        self.jobs: dict[int, Job] = {}
        self.newest: dict[str, int] = {}
        self.line = Line()
        self.floor = Floor(settings)
        self.recent = Recent()
        self.stops: dict[int, str] = {}
        self.inboxes: dict[str, list[Message]] = {}
        self.holds = Holds()
        self.batches = Batches()
        self.space = Space(self.floor)
        self.unsaid: set[int] = set()
        self.gone: list[str] = []
        self.sayings = Sayings()
        self.outbox = Outbox()
        self.deadlines: dict[int, int] = {}

    @property
    def settings(self) -> Settings:
        """What the queue is set to."""
        return self.floor.settings

    def moment(self) -> Moment:
        """Give the time and the next moment that matters."""
        return Moment(self.now, self.next_at())

    def next_at(self) -> int | None:
        """Give the earliest moment after now at which something falls due, expires or is lost."""
        moments = [job.expires_at for job in self.waiting() if job.expires_at]
        moments += self.deadlines.values()
        moments += [worker.lease_end for worker in self.floor.workers.values()]
        if self.paused is None:
            moments += [place.release for place in self.line if not place.due(self.now)]
            moments += [self.floor.overdue_at] if self.floor.overdue_at is not None else []
        if self.more or self.holds.returning or self.batches.trash:
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
            self.batches.settle(self.jobs, self.now)

    def _catch_up(self, now: int) -> None:
        self.now = max(self.now, now)
        self._expire_due()
        self._give_up_unwatched()
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
        self._let_return()

    def _let_return(self) -> None:
        """Let jobs go on whose hold was taken away, some in each step."""
        for record in self.holds.pop(RETURNS_PER_STEP):
            self._stand(self.jobs[record])

    def _expire_due(self) -> None:
        expired = sorted(
            (job.expires_at, job.record)
            for job in self.waiting()
            if job.expires_at and job.expires_at <= self.now
        )
        for _, record in expired[:EXPIRIES_PER_STEP]:
            self._leave(self.jobs[record])
            self._expire(self.jobs[record])

    def _give_up_unwatched(self) -> None:
        """Cancel jobs that nobody watched for as long as they ask, some in each step."""
        due = sorted((at, record) for record, at in self.deadlines.items() if at <= self.now)
        for _, record in due[:EXPIRIES_PER_STEP]:
            job = self.jobs[record]
            self._cancel(job, "abandoned", f"nobody watched it for {job.abandon / SECOND:g} s")

    def _cancel(self, job: Job, code: str, message: str) -> None:
        if job.phase is Phase.WAITING:
            self._leave(job)
        elif job.phase is Phase.RUNNING:
            self._log(job, self._stop(job, "cancelled"), code)
        self._end(job, code, message)

    def _set_deadline(self, job: Job) -> None:
        """Count the time anew after which a job is given up, unless somebody watches it."""
        if job.abandon and job.phase is not Phase.ENDED:
            self.deadlines[job.record] = self.now + job.abandon
        else:
            self.deadlines.pop(job.record, None)

    def _cycle(self, dice: bytes, caller: str | None = None) -> list[Start]:
        """Seat whoever can be seated, in line order; what the caller gets is answered, the rest is sent."""
        mine: list[Start] = []
        self.inboxes = {name: sent for name, sent in self.inboxes.items() if name in self.floor.workers}
        self._expire_due()
        self.floor.overdue_at = None
        self.more = False
        if self.paused is not None:
            return mine
        left, patient = STARTS_PER_CYCLE, True
        while True:
            left, early = self._seat_all(left, dice, caller, mine, patient=patient)
            self.more = not left
            due = [place for place in self.line.in_order(self.now) if place.due(self.now)]
            # A stop moves the newer version of its job, so whose a place is must be known before the walk.
            jobs = {place: self.jobs[self.line.job_for(place)] for place in due}
            gate = Gate(jobs, self.holds, self.space)
            patient = not self.more and self.floor.reclaim(due, self.now, dice, self._give_way, gate)
            if self.more or not (patient or early):
                return mine

    def _seat_all(
        self, left: int, dice: bytes, caller: str | None, mine: list[Start], *, patient: bool
    ) -> tuple[int, bool]:
        """Seat whoever fits into what is free.

        Answers how many more may start in this cycle, and whether it ended before a place for which somebody
        has to give way first.
        """
        eager = self.settings.eager
        places = [place for place in self.line.in_order(self.now) if eager or place.due(self.now)]
        for found in self.floor.seatable(places, caller, patient=patient):
            if found is None:
                return left, True
            if not left:
                break
            place, worker, units = found
            if place.lane.lacking and not self._space_for(place, units):
                continue
            left -= 1
            job = self._seat(place)
            if self._passed_over(job):
                continue
            level = self.floor.start_class(units, job)
            units.take(level)
            start = self._start(job, worker, dice, level)
            if worker.name == caller:
                mine.append(start)
            else:
                self._send(worker.name, start)
        return left, False

    def _passed_over(self, job: Job) -> bool:
        """Do with a job whose place came up what keeps it from starting; tell whether there was such."""
        if job.expires_at and job.expires_at <= self.now:
            self._expire(job)
        elif reason := self.holds.reason(job):
            self._set_held(job, reason)
        elif job.lacking and self.space.never_fits(job):
            self._end_for_space(job)
        else:
            return False
        return True

    def _space_for(self, place: Place, units: Units) -> bool:
        """Tell whether a place can be had with its space; the first that does not fit holds back the rest."""
        job = self.jobs[self.line.job_for(place)]
        expired = job.expires_at and job.expires_at <= self.now
        if expired or self.holds.reason(job) or self.space.never_fits(job):
            return True
        if self.space.fits(job, self.space.used):
            return True
        units.no_space = True
        return False

    def _seat(self, place: Place) -> Job:
        job = self.jobs[self.line.job_for(place)]
        self._leave(job)
        job.release, job.arrival = place.release, place.arrival
        return job

    def _start(self, job: Job, worker: Worker, dice: bytes, level: int) -> Start:
        job.phase, job.worker, job.stage = Phase.RUNNING, worker.name, max(job.stage, 1)
        job.attempt += 1
        job.progress = b""
        if job.lacking:
            self.space.take(job)
        levels = self.settings.levels
        kind, cap = Kind.SPECIFIC, levels[job.level - 1].cap
        if job.band is Band.INTERACTIVE:
            kind = Kind.INTERACTIVE
        elif job.elastic and len(levels) > 1:
            kind = Kind.ELASTIC
            cap = levels[-1].cap if self.settings.elastic == "borrow" else levels[level - 1].cap
        duration = min(job.duration, cap) if job.duration and kind is Kind.ELASTIC else job.duration or cap
        hold = Hold(job.record, dice, self.now, self._next(), level, kind, duration)
        worker.holds[job.record] = hold
        self._notify(job, "started", "")
        return self._start_of(hold)

    def _start_of(self, hold: Hold) -> Start:
        job = self.jobs[hold.record]
        lease = Lease(hold.record, hold.token)
        return Start(
            lease,
            job.id,
            job.version,
            job.attempt,
            job.need,
            job.body,
            hold.start,
            hold.duration,
            job.data,
            job.identifiers,
            job.ledger,
            job.status,
        )

    def _shift(self, lost: list[Lease], worker: str, dice: bytes) -> Shift:
        known = worker in self.floor.workers
        starts = self._cycle(dice, worker)
        self.batches.settle(self.jobs, self.now)
        return Shift(lost, starts, self.moment(), known=known)

    def _held(self, worker: str, lease: Lease) -> Hold | None:
        me = self.floor.workers.get(worker)
        hold = me.holds.get(lease.record) if me else None
        return hold if hold and hold.token == lease.token else None

    def still_stops(self, job: Job) -> bool:
        """Tell whether a job has ended, and its run has not yet."""
        return job.phase is Phase.ENDED and job.record in self.stops

    def _is_run_of(self, worker: str, hold: Hold) -> bool:
        """Tell whether a run is its record's last; one that was cancelled is so until its job goes on."""
        job = self.jobs.get(hold.record)
        if job is None or hold.stopping not in SETTLED:
            return job is not None
        return hold.stopping == "cancelled" and job.phase is Phase.ENDED and job.worker == worker

    def _unhand(self, worker: Worker, hold: Hold) -> None:
        """Give slot and units back; a job that waited for this stop stands in line like any other again."""
        self.floor.drop(worker, hold.record)
        id = self.stops.pop(hold.record, None)
        if id is None or id in self.stops.values():
            return
        job = self._newest(id)
        if job and job.blocked:
            self._set_blocked(job, blocked=False)

    def _set_blocked(self, job: Job, *, blocked: bool) -> None:
        """Keep a waiting job from starting, or let it; it has a place of its own from then on."""
        self._leave(job)
        job.blocked, job.own = blocked, True
        self.line.join_own(job)

    def _give_back(self, worker: str, holds: list[Hold], *, lost: bool) -> None:
        """Return jobs to the front, last started first, so that the first started goes first again."""
        for hold in sorted(holds, key=lambda hold: -hold.number):
            self._unhand(self.floor.workers[worker], hold)
            if hold.stopping in SETTLED:
                continue
            job = self.jobs[hold.record]
            if (hold.stopping and hold.confirmed) or hold.kind is Kind.INTERACTIVE:
                self._end_stopped(job, hold)
                continue
            spent = lost and hold.confirmed
            self._log(job, hold, "lost" if lost else "handed-back")
            if self.newest[job.id] != job.record:
                self._supersede(job)
                continue
            if not spent and job.unspent < self.settings.attempts:
                job.unspent += 1
                job.attempt -= 1
            else:
                job.unspent = 0
                if job.attempt >= self.settings.attempts:
                    self._end(job, "attempts", f"lost with its worker {job.attempt} times")
                    continue
            self._notify(job, "requeued", "lost" if lost else "handed-back")
            self._front(job)
            self._stand(job)

    def _end_stopped(self, job: Job, hold: Hold) -> None:
        """End a run that was told to stop, or that cannot go on elsewhere; its worker does not say how."""
        code = hold.stopping or "halted"
        message = "its worker stopped" if code == "halted" else f"time limit {hold.duration / SECOND:g} s"
        self._log(job, hold, code)
        self._end(job, code, message)

    def _front(self, job: Job) -> None:
        job.band, job.release, job.arrival = Band.FRONT, self.now, self._next()

    def _stand(self, job: Job) -> None:
        """Give a job a place of its own at its release and arrival, unless something holds it."""
        job.worker = ""
        if reason := self.holds.reason(job):
            self._set_held(job, reason)
        else:
            self._stand_in_line(job)

    def _stand_in_line(self, job: Job) -> None:
        if job.phase is Phase.HELD:
            self._must_say(job)
        job.phase, job.own = Phase.WAITING, True
        job.blocked, job.lacking = job.id in self.stops.values(), self.space.lacks(job)
        if job.lacking and self.space.never_fits(job):
            self._end_for_space(job)
        else:
            self.line.join_own(job)

    def _set_held(self, job: Job, reason: str) -> None:
        """Set a job aside that does not stand in line; it keeps what its place was."""
        job.phase, job.own, job.blocked, job.lacking, job.worker = Phase.HELD, False, False, False, ""
        self.holds.keep(job, reason)
        self._must_say(job)

    def _send(self, worker: str, message: Message) -> None:
        self.inboxes.setdefault(worker, []).append(message)

    def _hold_of(self, job: Job) -> tuple[Worker, Hold]:
        worker = self.floor.workers[job.worker]
        return worker, worker.holds[job.record]

    def _stop(self, job: Job, code: str) -> Hold:
        """Tell the worker to stop a run; until it confirms, slot and units stay taken and the job waits."""
        worker, hold = self._hold_of(job)
        hold.stopping = code
        self.stops[job.record] = job.id
        self._say_stop(worker, hold)
        newest = self._newest(job.id)
        if newest and newest.phase is Phase.WAITING and not newest.blocked:
            self._set_blocked(newest, blocked=True)
        return hold

    def _say_stop(self, worker: Worker, hold: Hold) -> None:
        limit = hold.duration if hold.stopping in ("cut", "time-limit") else 0
        self._send(worker.name, Stop(Lease(hold.record, hold.token), hold.stopping, limit))

    def _say_lower(self, worker: Worker, hold: Hold) -> None:
        self._send(worker.name, Lower(Lease(hold.record, hold.token), hold.duration, hold.lowered))

    def _give_way(self, worker: Worker, hold: Hold, level: int, code: str) -> None:
        """Halt an interactive run, or cut an elastic one to the cap of a class."""
        if code == "halted":
            self._stop(self.jobs[hold.record], code)
        else:
            self._lower(worker, hold, level, self.settings.levels[level - 1].cap, code)

    def _lower(self, worker: Worker, hold: Hold, level: int, duration: int, code: str) -> None:
        """Let a run take only so long and hold no more than this class; one that is past that stops."""
        shorter = duration < hold.duration
        if shorter:
            hold.duration, hold.lowered = duration, code
        if self.now - hold.start >= hold.duration:
            self._stop(self.jobs[hold.record], code)
            return
        hold.level = min(hold.level, level)
        if shorter:
            self._say_lower(worker, hold)

    def _leave(self, job: Job) -> None:
        place = self.line.leave(job)
        job.release, job.arrival, job.own = place.release, place.arrival, False

    def _supersede(self, job: Job) -> None:
        self._end(job, "superseded", "a newer version took its place")

    def _end_for_space(self, job: Job) -> None:
        self._end(job, "space", f"needs {job.space} bytes of space, and there are {self.space.budget}")

    def _expire(self, job: Job) -> None:
        self._end(job, "expired", "it was still waiting when it expired")

    def _end(self, job: Job, code: str, message: str, result: bytes = b"", *, known: bool = False) -> None:
        """End a job for good; where its end was `known` before, its submitter is not told again."""
        if job.phase is Phase.HELD:
            self.holds.drop(job)
        self.space.give_back(job)
        job.phase, job.own, job.blocked, job.lacking = Phase.ENDED, False, False, False
        job.code, job.message, job.result = code, message, result
        job.ended_at, job.hold = self.now, None
        self._must_say(job)
        self._set_deadline(job)
        if code != "superseded" and not known:
            self._notify(job, "ended", code)

    def _notify(self, job: Job, kind: NoticeKind, code: str) -> None:
        """Note what a job's submitter is to be told, where it wants to be."""
        if job.callback:
            notice = Notice(self._next(), kind, self.now, job.attempt, job.stage, job.worker, code)
            self.outbox.add(job, notice)

    def _must_say(self, job: Job) -> None:
        """Note that the ledger's tree has to hear of a job's new state, where there is one."""
        if job.ledger:
            self.unsaid.add(job.record)

    def _log(self, job: Job, hold: Hold, code: str) -> None:
        job.timeline.append(Run(job.stage, job.version, job.attempt, job.worker, hold.start, self.now, code))

    def _next(self) -> int:
        self.seq = max(self.seq + 1, self.now)
        return self.seq

    def _newest(self, id: str) -> Job | None:
        record = self.newest.get(id)
        return self.jobs.get(record) if record is not None else None

    def _versions(self, id: str) -> Iterator[Job]:
        job = self._newest(id)
        if job is None:
            raise UnknownJob(self.queue, id)
        while job is not None:
            yield job
            job = self.jobs.get(job.previous)
