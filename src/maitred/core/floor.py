"""The Floor: may a job start now, and for how long.

A worker announces how many slots it has and what it serves, and holds them while it renews its lease. A job
of class c needs a slot and a unit of every level 2..c, and holds them from its start until the worker
confirms that it ended, also where it was deleted or cancelled in between.

Two walks along the line decide everything. The first seats whoever fits into what is free. The second looks
at the floor as it will be when all stops that are under way are confirmed: whoever still lacks room there,
and could have it from an interactive or an elastic job, makes that one give way. So each stop is for one
waiting job, and none is asked for where one is already under way. What gives way, and in which class an
elastic job starts, is the policy: `borrow` or `squeeze`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol

from maitred.core.classes import level_for, limits
from maitred.core.job import Job, Lane, Place
from maitred.core.settings import Settings

# What a lost worker held comes back in one step, which must be short.
MOST_SLOTS = 1024

# After these the record is no longer the run's: its end, or its removal, was told when the stop was asked.
SETTLED = frozenset({"cancelled", "deleted", "moved"})


class Kind(IntEnum):
    """How a run gives way: not at all, past the fastest cap, or first of all."""

    SPECIFIC = 0
    ELASTIC = 1
    INTERACTIVE = 2


@dataclass(slots=True)
class Hold:
    """One lease: who may write about a job, for how long it may run, and the class whose units it holds.

    `number` tells in which order jobs started. `lowered` and `stopping` are the codes of what the worker was
    told: to end sooner, to end now.
    """

    record: int
    token: bytes
    start: int
    number: int
    level: int
    kind: Kind
    duration: int
    confirmed: bool = False
    lowered: str = ""
    stopping: str = ""


@dataclass(slots=True)
class Worker:
    """A worker as the store knows it."""

    name: str
    slots: int
    serves: frozenset[str]
    lease_end: int
    draining: bool = False
    holds: dict[int, Hold] = field(default_factory=dict)
    about: bytes = b""

    @property
    def free(self) -> int:
        """How many more jobs it may be given."""
        return 0 if self.draining else max(0, self.slots - len(self.holds))


class Units:
    """Free units of the levels 2..N as a walk goes on.

    `aside` is the first level that is full for good; `no_space` tells that somebody before lacks space.
    """

    def __init__(self, free: Sequence[int]) -> None:
        self._free = list(free)
        self.aside = len(free) + 1
        self.no_space = False

    def full(self, level: int) -> list[int]:
        """Name the full levels that a job of this class needs."""
        return [k for k in range(2, level + 1) if self._free[k - 1] <= 0]

    def beyond(self, level: int, yielding: Sequence[int]) -> int | None:
        """Name the lowest level that a job of this class needs and that stays full whoever gives way."""
        return next((k for k in self.full(level) if self._free[k - 1] + yielding[k - 1] <= 0), None)

    def longest(self) -> int:
        """Give the longest class that has room."""
        full = self.full(len(self._free))
        return full[0] - 1 if full else len(self._free)

    def take(self, level: int, above: int = 1) -> None:
        """Take a unit of each level over `above` up to this one."""
        for k in range(above + 1, level + 1):
            self._free[k - 1] -= 1

    def give(self, level: int, above: int = 1) -> None:
        """Return a unit of each level over `above` up to this one."""
        for k in range(above + 1, level + 1):
            self._free[k - 1] += 1


class Gate(Protocol):
    """What keeps a place from starting beside the floor: a hold, or a lack of space."""

    def passes(self, place: Place) -> bool:
        """Tell whether the place could start if it had a slot and its units."""

    def take(self, place: Place) -> None:
        """Count the place as started."""


class Floor:
    """All workers of a queue, and every need that any worker ever announced."""

    def __init__(self, settings: Settings) -> None:
        """Begin with no worker."""
        self.settings = settings
        self.workers: dict[str, Worker] = {}
        self.announced: set[str] = set()
        self.overdue_at: int | None = None

    # ---------------------------------------------------------------- what there is

    @property
    def slots(self) -> int:
        """The number of live slots, which is the limit of level 1."""
        return sum(worker.slots for worker in self.workers.values() if not worker.draining)

    @property
    def limits(self) -> list[int]:
        """The limit of each level."""
        return limits(self.settings.levels, self.slots)

    @property
    def used(self) -> list[int]:
        """How many units of each level are held, on draining workers too."""
        levels = [hold.level for worker in self.workers.values() for hold in worker.holds.values()]
        return [sum(level >= k for level in levels) for k in range(1, len(self.settings.levels) + 1)]

    def holds(self, *, stopping: bool) -> Iterator[tuple[Worker, Hold]]:
        """Go through the leases of all workers that do not drain."""
        for worker in self.workers.values():
            for hold in worker.holds.values():
                if not worker.draining and bool(hold.stopping) == stopping:
                    yield worker, hold

    def elastics(self) -> list[tuple[Worker, Hold]]:
        """List the runs that may be asked to give way: under `squeeze` those that hold more than a slot."""
        least = 1 if self.settings.elastic == "borrow" else 2
        found = self.holds(stopping=False)
        return [(w, hold) for w, hold in found if hold.kind is Kind.ELASTIC and hold.level >= least]

    @property
    def yielding(self) -> list[int]:
        """How many units of each level over the first elastic runs could give up."""
        levels = [hold.level for _, hold in self.elastics()]
        return [sum(level >= k for level in levels) for k in range(1, len(self.settings.levels) + 1)]

    def highest(self, dice: bytes, number: int) -> list[tuple[Worker, Hold]]:
        """Choose by the n-th throw of the dice one of the elastic runs of the highest class, if any."""
        runs = sorted(self.elastics(), key=_age)
        top = [run for run in runs if run[1].level == max(hold.level for _, hold in runs)]
        at = 2 * (number % 8)
        return [top[int.from_bytes(dice[at : at + 2], "big") % len(top)]] if top else []

    def interactives(self) -> list[tuple[Worker, Hold]]:
        """List the interactive runs."""
        return [(w, h) for w, h in self.holds(stopping=False) if h.kind is Kind.INTERACTIVE]

    def pick(self, need: str, caller: str | None) -> Worker | None:
        """Choose who runs a job with this need: the caller if it can, else the one with most free slots."""
        able = [worker for worker in self.workers.values() if worker.free and need in worker.serves]
        for worker in able:
            if worker.name == caller:
                return worker
        return max(able, key=lambda worker: (worker.free, worker.name.encode()), default=None)

    def drop(self, worker: Worker, record: int) -> None:
        """Give slot and units back, once; a draining worker with nothing left in hand is gone."""
        del worker.holds[record]
        if worker.draining and not worker.holds:
            del self.workers[worker.name]

    # ---------------------------------------------------------------- who fits

    def seatable(
        self, places: Iterable[Place], caller: str | None, *, patient: bool
    ) -> Iterator[tuple[Place, Worker, Units] | None]:
        """Go through the places that can start now, in line order.

        Whoever is given one starts it, or leaves it, before asking for the next; a start takes its units. A
        full level sets aside the classes that need it, a missing worker the lane. A `patient` walk ends with
        None before a place that lacks only units which elastic runs could give up at once.
        """
        units = Units([limit - used for limit, used in zip(self.limits, self.used, strict=True)])
        no_worker: set[Lane] = set()
        nothing = [0] * len(self.settings.levels)
        for place in places:
            lane = place.lane
            if lane.level >= units.aside or lane in no_worker or (lane.lacking and units.no_space):
                continue
            full = units.full(lane.level)
            beyond = units.beyond(lane.level, self.yielding if patient else nothing)
            worker = self.pick(lane.served, caller)
            if beyond:
                units.aside = beyond
            elif not worker:
                no_worker.add(lane)
            elif full:
                yield None
                return
            else:
                yield place, worker, units

    def start_class(self, units: Units, job: Job) -> int:
        """Give the class that a job starts in; under `squeeze` an elastic one takes the longest with room."""
        if not job.elastic or self.settings.elastic == "borrow":
            return job.level
        wanted = level_for(self.settings.levels, job.duration) if job.duration else None
        return min(units.longest(), wanted or len(self.settings.levels))

    # ---------------------------------------------------------------- who gives way

    def reclaim(
        self,
        places: Iterable[Place],
        now: int,
        dice: bytes,
        give_way: Callable[[Worker, Hold, int, str], None],
        gate: Gate,
    ) -> bool:
        """Make runs give way to due places that lack only what those hold, and that the gate lets pass.

        `give_way(worker, hold, level, code)` lowers a run to a class (`cut`), or stops it at once (`halted`).
        Tells whether units came free at once, so that the line is worth another walk.
        """
        return Reclaim(self, now, dice, give_way).walk(places, gate)


class Reclaim:
    """One walk along the line on the floor as it will be when all stops under way are confirmed."""

    def __init__(
        self, floor: Floor, now: int, dice: bytes, give_way: Callable[[Worker, Hold, int, str], None]
    ) -> None:
        self.floor, self.now, self.dice, self.give_way = floor, now, dice, give_way
        self.caps = [each.cap for each in floor.settings.levels]
        self.borrow = floor.settings.elastic == "borrow"
        self.units = Units([limit - used for limit, used in zip(floor.limits, floor.used, strict=True)])
        self.slots: dict[frozenset[str], int] = {}
        for worker in floor.workers.values():
            self.slots[worker.serves] = self.slots.get(worker.serves, 0) + worker.free
        for worker, hold in floor.holds(stopping=True):
            self._freed(worker, hold)
        self.freed_at_once = False
        self.rolls = 0

    def walk(self, places: Iterable[Place], gate: Gate) -> bool:
        """Give each due place what it lacks, as far as somebody can give way."""
        no_worker: set[Lane] = set()
        self.floor.overdue_at = None
        for place in places:
            lane = place.lane
            if lane.level >= self.units.aside or lane in no_worker or not gate.passes(place):
                continue
            if beyond := self.units.beyond(lane.level, self.floor.yielding):
                self.units.aside = beyond
                continue
            group = self._slot_for(lane.bare)
            if group is None:
                no_worker.add(lane)
                continue
            while full := self.units.full(lane.level):
                self.rolls += 1
                self._lower(self.floor.highest(self.dice, self.rolls)[0], full[0] - 1)
            self.slots[group] -= 1
            self.units.take(lane.level)
            gate.take(place)
        return self.freed_at_once

    def _slot_for(self, need: str) -> frozenset[str] | None:
        """Find a slot with workers that serve the need; if there is none, make one by a stop."""
        group = self._most_free(need)
        if group is None:
            serving = {w.name for w in self.floor.workers.values() if need in w.serves and not w.draining}
            self._make_room(serving)
            group = self._most_free(need)
        return group

    def _most_free(self, need: str) -> frozenset[str] | None:
        able = [group for group, free in self.slots.items() if need in group and free > 0]
        return max(
            able, key=lambda group: (self.slots[group], "\n".join(sorted(group)).encode()), default=None
        )

    def _make_room(self, serving: set[str]) -> None:
        """Halt an interactive run; with none, cut elastic ones as the policy says."""
        halting = [(w, hold) for w, hold in self.floor.interactives() if w.name in serving]
        if halting:
            worker, hold = max(halting, key=_age)
            self.give_way(worker, hold, 0, "halted")
            self._freed(worker, hold)
            return
        elastics = [(w, hold) for w, hold in self.floor.elastics() if w.name in serving]
        if not self.borrow:
            for worker, hold in sorted(elastics, key=_age):
                self._lower((worker, hold), 1)
            return
        overdue = [(w, hold) for w, hold in elastics if hold.start + self.caps[0] <= self.now]
        if overdue:
            self._lower(max(overdue, key=_age), 1)
        elif elastics:
            first = min(hold.start for _, hold in elastics) + self.caps[0]
            self.floor.overdue_at = min(first, self.floor.overdue_at or first)

    def _lower(self, run: tuple[Worker, Hold], level: int) -> None:
        worker, hold = run
        before = hold.level
        self.give_way(worker, hold, level, "cut")
        if hold.stopping:
            self._freed(worker, hold)
        else:
            self.units.give(before, hold.level)
            self.freed_at_once = True

    def _freed(self, worker: Worker, hold: Hold) -> None:
        self.slots[worker.serves] = self.slots.get(worker.serves, 0) + 1
        self.units.give(hold.level)


def _age(run: tuple[Worker, Hold]) -> tuple[int, int]:
    """Sort runs, oldest first."""
    return (run[1].start, run[1].record)
