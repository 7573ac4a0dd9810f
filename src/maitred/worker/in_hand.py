"""The jobs that a worker has in hand: each begins once, is kept to its limit, stops when asked, ends once.

What the store says comes by two roads, the inbox and the answers of other calls, and may come late, twice, or
before what it is about. Renewing settles it: whatever was written before a renewal has been heard of by then,
or is no longer ours. So what was said of a lease is remembered for two renewals, and no start begins again,
begins after its stop, or begins without the lower limit that overtook it.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import structlog

from maitred.core.job import Finish, Lease, Lower, Shift, Start, Stop, Typed
from maitred.service.metrics.runs import RunCount
from maitred.worker.deadlines import Deadlines
from maitred.worker.outcome import STOPPED, TIME_LIMIT, Outcome, Why
from maitred.worker.reach import Reach
from maitred.worker.reports import Reports
from maitred.worker.run import Run
from maitred.worker.store_clock import StoreClock
from maitred.worker.voice import Voice

_log = structlog.get_logger()


class InHand:
    """The runs of one worker by lease, and what was given up and is still to be handed back.

    What is `parting` is over, and has words that the store has not heard.

    `carry_out` does the work of a start; it gives None if it must not begin at the moment. Jobs that start
    when the worker is `stopping`, or come so late that their time is over before they begin, are handed back.
    """

    def __init__(
        self,
        carry_out: Callable[[Run], Coroutine[Any, Any, Outcome | None]],
        clock: StoreClock,
        reach: Reach,
        reports: Reports,
        stopping: asyncio.Event,
        *,
        voice: Voice,
        time_limit: int,
        count: RunCount | None = None,
    ) -> None:
        self.runs: dict[Lease, Run] = {}
        self.idle = asyncio.Event()
        self._carry_out, self._time_limit, self._stopping = carry_out, time_limit, stopping
        self._clock, self._reach, self._reports, self._voice = clock, reach, reports, voice
        self._deadlines = Deadlines()
        self._returning: dict[Lease, asyncio.Task[Outcome | None] | None] = {}
        self.parting: set[Lease] = set()
        self._past: dict[Lease, int] = {}
        self._lowered: dict[Lease, tuple[Lower, int]] = {}
        self._told = 0
        self._count = count or RunCount()

    # ---------------------------------------------------------------- what the store says

    def receive(self, start: Start) -> None:
        """Begin a job from the inbox; one from before the last renewal is known, or no longer ours."""
        if start.start >= self._told:
            self._clock.hear_of(start.start)
            self.begin(start)

    def begin(self, start: Start) -> None:
        """Start a job. One that was delivered before may have less time now; else it is passed over."""
        lease = start.lease
        if run := self.runs.get(lease):
            if 0 < start.duration < run.limit:
                self._limit(run, start.duration, TIME_LIMIT)
            return
        if lease in self._past or lease in self._returning:
            return
        self._past[lease] = start.start
        limit, code = start.duration or self._time_limit, TIME_LIMIT
        if self._lowered and lease in self._lowered:
            order, _ = self._lowered.pop(lease)
            if order.duration <= limit:
                limit, code = order.duration, order.code
        at = self._clock.local_time(start.start + limit)
        if self._stopping.is_set() or at <= time.monotonic():
            self._hand_back([lease])
        else:
            self._go(start, limit, code, at)

    def _go(self, start: Start, limit: int, code: str, at: float) -> None:
        run = self.runs[start.lease] = Run(start, limit, code, at, self._voice)
        run.task = asyncio.get_running_loop().create_task(self._carry_out(run))
        run.task.add_done_callback(partial(self._over, run))
        self._deadlines.watch(run)

    def stop(self, order: Stop) -> None:
        """End work; hand it back unbegun if its start is lost, or still on the way by another road."""
        if run := self.runs.get(order.lease):
            self._stop(run, Why(order.code, order.limit))
        elif not self._knows(order.lease):
            self._past[order.lease] = self._told
            self._hand_back([order.lease])

    def lower(self, order: Lower) -> None:
        """Leave work less time, from its start on; work that has had it ends at once."""
        if run := self.runs.get(order.lease):
            if order.duration <= run.limit:
                self._limit(run, order.duration, order.code)
        elif not self._knows(order.lease):
            known, _ = self._lowered.get(order.lease, (order, 0))
            self._lowered[order.lease] = (min(known, order, key=lambda lower: lower.duration), self._told)

    def type_in(self, typed: Typed) -> None:
        """Pass on what somebody typed; what was typed for a run that is over is nobody's."""
        if run := self.runs.get(typed.lease):
            run.type_in(typed)

    def lose(self, lease: Lease) -> None:
        """End work that is no longer ours; its end is told to the store, which knows why it is not."""
        if run := self.runs.get(lease):
            if run.why is None:
                self._count.lost()
                _log.warning("a lease was lost", queue=self._count.queue, job=run.start.id, lease=run.name)
            self._stop(run, Why(STOPPED))

    def renewed(self, now: int) -> None:
        """Note a renewal at this moment of the store's, and forget what was said before the one before."""
        self._past = {lease: told for lease, told in self._past.items() if told >= self._told}
        self._lowered = {lease: kept for lease, kept in self._lowered.items() if kept[1] >= self._told}
        self._told = now

    def _knows(self, lease: Lease) -> bool:
        """Tell whether work that does not run was here already, so that an order for it comes too late."""
        return (
            lease in self._past
            or lease in self._returning
            or lease in self.parting
            or self._reports.has(lease)
        )

    # ---------------------------------------------------------------- limits and ends

    def _limit(self, run: Run, limit: int, code: str) -> None:
        if run.why is None:
            run.limit, run.code, run.at = limit, code, self._clock.local_time(run.start.start + limit)
            self._deadlines.watch(run)

    def _stop(self, run: Run, why: Why) -> None:
        self._deadlines.drop(run)
        run.stop(why)

    def _over(self, run: Run, _task: "asyncio.Task[Outcome | None]") -> None:
        """Tell what became of a run that ended by itself or was ended; nothing of one that was given up."""
        outcome = run.outcome()
        self._deadlines.drop(run)
        if self.runs.pop(run.lease, None) is None:
            self._voice.forget(run.lease)
            if run.lease in self._returning:
                self._reach.doubtful.set()
            return
        if not self.runs:
            self.idle.set()
        if outcome is None:
            self._past.pop(run.lease, None)
            self._reach.doubtful.set()
            return
        if run.start.start < self._told:
            self._past[run.lease] = self._told
        self._count.ended(outcome.code, time.monotonic() - run.begun)
        finish = Finish(run.lease, *outcome, status=run.start.status)
        if self._voice.has(run.lease):
            self.parting.add(run.lease)
            self._reach.send(self._part(finish))
        else:
            self._voice.forget(run.lease)
            self._reports.tell(finish)

    async def _part(self, finish: Finish) -> None:
        """Tell of an end with what was said last, after all that was said before."""
        try:
            said = await self._voice.last_words(finish.lease)
            self._reports.tell(finish._replace(said=said))
        finally:
            self.parting.discard(finish.lease)

    # ---------------------------------------------------------------- what is given up

    def lose_all(self, why: str) -> None:
        """Give up all work, and say why."""
        if self.runs:
            _log.error("leases lost", worker=self._reports.worker, jobs=len(self.runs), why=why)
            for run in self.runs.values():
                _log.warning("a lease was lost", queue=self._count.queue, job=run.start.id, lease=run.name)
            self._count.lost(len(self.runs))
        self.give_up()

    def give_up(self) -> None:
        """End all work without a result, to hand it back when it has ended if it is still ours then.

        What was being stopped anyway is told of as usual; that changes nothing if it is no longer ours.
        """
        for lease, run in list(self.runs.items()):
            if run.why is None:
                self._deadlines.drop(run)
                run.give_up()
                self._returning[lease] = run.task
                del self.runs[lease]
        if not self.runs:
            self.idle.set()

    def ending(self) -> list[Lease]:
        """List what was given up and has not ended yet."""
        return [lease for lease, task in self._returning.items() if task and not task.done()]

    def hand_back_given_up(self, renewed: Shift) -> None:
        """Hand back what was given up and has ended, and is still this worker's after all."""
        ending = self.ending()
        missed = [start.lease for start in renewed.starts if start.lease in self._returning]
        self._returning = {lease: self._returning[lease] for lease in (*ending, *missed)}
        if back := [lease for lease in missed if lease not in ending]:
            self._hand_back(back)

    def forget_given_up(self) -> None:
        """Hand nothing back: all of it is lost."""
        self._returning.clear()

    def close(self) -> None:
        """Keep nobody to a limit any more."""
        self._deadlines.close()

    def _hand_back(self, leases: list[Lease]) -> None:
        self._returning |= dict.fromkeys(leases)
        self._count.handed_back(len(leases))

        async def errand() -> None:
            await self._reports.hand_back(leases)
            for lease in leases:
                self._returning.pop(lease, None)

        self._reach.send(errand())
