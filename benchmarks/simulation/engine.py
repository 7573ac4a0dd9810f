"""A queue and its worker in virtual time: the production rule, with a clock that jumps.

The rule is `House`, the whole queue in plain Python that the scripts in the store are compared with. Nothing
of it is rebuilt here. The engine is what stands around it: people who submit, one worker that obeys its
inbox, and a clock that goes from one moment that matters to the next: the end of a run, an arrival, or
`next_at`, where the queue asks to be woken.

The worker does what a real one does. A job that is done in time ends then. One that reaches its limit is
stopped, and its slot is free when the stop has taken its time; a `Lower` brings the limit forward, a `Stop`
ends the run now. The first reason to stop is the one that it tells. Leases outlast the simulation, since a
worker in virtual time does not fall silent.
"""

import heapq
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import IntEnum
from itertools import groupby

from benchmarks.simulation.visit import DENIED, Arrival, Visit
from maitred.core.house import House
from maitred.core.job import Finish, Lower, Order, Put, Start, Stop, Submitter
from maitred.core.settings import DAY, SECOND, Settings

NEED = "handler:work"
WORKER = "worker"
BEGINNING = 1_000 * SECOND
# A tick forgets what ended, at most 200 at a time; the queue's verbs look at all that it keeps.
SWEEP_EVERY = 100


class Kind(IntEnum):
    """What happens at the same moment happens in this order: who is done goes before who comes."""

    END = 0
    ARRIVE = 1


class Run:
    """A job in the worker's hands: when it will end, and what it will say then."""

    def __init__(self, start: Start, run: int, stop_takes: int) -> None:
        self.lease, self.id, self.begun = start.lease, start.id, start.start
        self._run, self._stop_takes = run, stop_takes
        self.limit(start.duration, "time-limit")

    def limit(self, duration: int, code: str) -> None:
        """Let the run take only so long from its start on."""
        self.code = "" if self._run <= duration else code
        self._stop_at = self.begun + duration
        self.ends_at = self.begun + self._run if not self.code else self._stop_at + self._stop_takes

    def stop(self, code: str, now: int) -> None:
        """End the run now, unless its stop is already under way."""
        if self.code and self._stop_at <= now:
            return
        self.code, self._stop_at, self.ends_at = code, now, now + self._stop_takes


class Engine:
    """One queue with one worker of some slots. The same seed and arrivals give the same visits.

    `look` is called with the queue after each thing that happened.
    """

    def __init__(
        self, settings: Settings, slots: int, seed: int = 0, *, look: Callable[[House], None] | None = None
    ) -> None:
        self.house = House("simulation", replace(settings, lease=1_000 * DAY, retention=SECOND))
        self._dice = random.Random(seed)
        self._stop_takes = settings.kill_after
        self._look = look
        self._events: list[tuple[int, Kind, int, object]] = []
        self._number = self._ended = 0
        self._runs: dict[str, Run] = {}
        self.visits: dict[str, Visit] = {}
        self.started: list[str] = []
        self.now = BEGINNING
        self.house.join(WORKER, slots, frozenset({NEED}), self.now, self._roll())

    def play(self, arrivals: Iterable[Arrival]) -> dict[str, Visit]:
        """Let all of them arrive, from the beginning on, and go on until nobody waits or runs."""
        for (at, _), together in groupby(arrivals, key=lambda arrival: (arrival.at, arrival.interactive)):
            self._plan(BEGINNING + at, Kind.ARRIVE, list(together))
        while (moment := self._next()) is not None:
            self.now = moment
            self._step()
            self._obey()
            if self._look:
                self._look(self.house)
        assert not self._runs, "somebody runs for ever"
        assert len(self.visits) == len(self.started) + self._denied(), "somebody was never seated"
        return self.visits

    def _denied(self) -> int:
        return sum(visit.start is None and visit.code == DENIED for visit in self.visits.values())

    def _next(self) -> int | None:
        """Give the next moment at which something happens; None if all is over."""
        if not self._events and not any(self.house.line):
            return None
        asked = self.house.next_at()
        planned = self._events[0][0] if self._events else asked
        assert asked is not None
        assert planned is not None
        return min(asked, planned)

    def _step(self) -> None:
        """Let one thing happen; if nothing is planned for now, the queue asked for a tick."""
        if self._ended >= SWEEP_EVERY or not self._events or self._events[0][0] > self.now:
            self.house.tick(self.now, self._roll())
            self._ended = 0
            return
        _, kind, _, what = heapq.heappop(self._events)
        if kind is Kind.ARRIVE:
            assert isinstance(what, list)
            self._arrive(what)
        elif isinstance(what, Run) and what.ends_at == self.now and self._runs.get(what.id) is what:
            self._end(what)

    def _arrive(self, arrivals: list[Arrival]) -> None:
        for arrival in arrivals:
            self.visits[arrival.id] = Visit(arrival)
        if arrivals[0].interactive:
            for arrival in arrivals:
                if self.house.admit(_order(arrival), self.now, self._roll()).denied:
                    self.visits[arrival.id].code = DENIED
                self._obey()
            return
        answers = self.house.put([_order(arrival) for arrival in arrivals], self.now, self._roll())
        assert all(isinstance(answer, Put) for answer in answers), answers

    def _end(self, run: Run) -> None:
        del self._runs[run.id]
        self._ended += 1
        visit = self.visits[run.id]
        visit.end, visit.code = self.now - BEGINNING, run.code
        shift = self.house.finish(WORKER, [Finish(run.lease, run.code)], self.now, self._roll())
        assert not shift.lost, "the queue had forgotten a run"
        for start in shift.starts:
            self._begin(start)

    def _obey(self) -> None:
        """Read the inbox and do what it says."""
        for message in self.house.inboxes.pop(WORKER, []):
            if isinstance(message, Start):
                self._begin(message)
            elif isinstance(message, Stop | Lower):
                self._change(message)

    def _begin(self, start: Start) -> None:
        visit = self.visits[start.id]
        assert visit.start is None, "nobody starts twice"
        visit.start = start.start - BEGINNING
        self.started.append(start.id)
        run = self._runs[start.id] = Run(start, visit.arrival.run, self._stop_takes)
        self._plan(run.ends_at, Kind.END, run)

    def _change(self, message: Stop | Lower) -> None:
        run = next(run for run in self._runs.values() if run.lease == message.lease)
        if isinstance(message, Stop):
            run.stop(message.code, self.now)
        else:
            run.limit(message.duration, message.code)
        self._plan(run.ends_at, Kind.END, run)

    def _plan(self, at: int, kind: Kind, what: object) -> None:
        self._number += 1
        heapq.heappush(self._events, (at, kind, self._number, what))

    def _roll(self) -> bytes:
        return self._dice.randbytes(16)


def _order(arrival: Arrival) -> Order:
    return Order(
        arrival.id,
        Submitter("user", arrival.submitter),
        NEED,
        b"",
        level=arrival.level or 1,
        elastic=arrival.level is None,
        delay=arrival.delay,
    )
