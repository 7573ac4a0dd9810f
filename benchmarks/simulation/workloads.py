"""Who comes to the queue: the same people for every policy.

A workload is made from a seed alone. Each job has a true run time, which the queue does not know. A few ask
for a class that is too short for them; elastic jobs do not ask at all.
"""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.simulation.chance import Chance, microseconds
from benchmarks.simulation.deadline import deadline_arrivals
from benchmarks.simulation.visit import Arrival
from maitred.core.classes import PERCENT, DurationClass, Limit
from maitred.core.settings import SECOND

INTERACTIVE = "interactive"
ELASTIC = "elastic"


def classes(caps: tuple[int, ...], percents: tuple[int, ...]) -> tuple[DurationClass, ...]:
    """Name classes with these caps in seconds; the percents are those of all but the first."""
    limits = [None, *(Limit(percent * PERCENT, percent=True) for percent in percents)]
    names = ("fast", "medium", "slow")
    return tuple(
        DurationClass(name, cap * SECOND, limit) for name, cap, limit in zip(names, caps, limits, strict=True)
    )


RENDERING = classes((3, 10, 30), (50, 25))
GRADING = classes((30, 60, 120), (50, 25))


@dataclass(frozen=True)
class Workload:
    """People who come to one queue, and the floor that they find.

    Where the same people come `again` and again, it matters how they fare beside each other.
    """

    name: str
    about: str
    slots: int
    classes: tuple[DurationClass, ...]
    arrivals: tuple[Arrival, ...]
    again: bool = False

    def asked(self, arrival: Arrival) -> str:
        """Name what a job asked for: a class, elastic or interactive."""
        if arrival.interactive:
            return INTERACTIVE
        return ELASTIC if arrival.level is None else self.classes[arrival.level - 1].name


def steady(seed: int) -> Workload:
    """Draw a usual afternoon: people come as they like, with seven tenths of what 8 slots can do."""
    slots, jobs = 8, 2_400
    mix: dict[int | str, float] = {1: 0.37, 2: 0.18, 3: 0.04, ELASTIC: 0.4, INTERACTIVE: 0.01}
    chance = Chance(seed, "steady")
    drawn = [_drawn(chance, chance.one_of(mix)) for _ in range(jobs)]
    work = sum(min(run, 30.0) for asked, run in drawn if asked != INTERACTIVE)
    gap = work / jobs / (0.7 * slots)
    arrivals, at = [], 0.0
    for number, (asked, run) in enumerate(drawn):
        at += chance.exponential(gap)
        arrivals.append(_arrival(at, number, f"user-{int(chance.part() * 150)}", asked, run))
    return Workload("steady", _STEADY, slots, RENDERING, tuple(arrivals))


def burst(seed: int) -> Workload:
    """Draw an idle floor with two sessions, and then a batch of 300 jobs in one call."""
    mix: dict[int | str, float] = {1: 0.4, 2: 0.2, 3: 0.1, ELASTIC: 0.3}
    chance = Chance(seed, "burst")
    sessions = [
        _arrival(at, number, f"guest-{number}", INTERACTIVE, 600.0) for number, at in enumerate((1.0, 2.0))
    ]
    batch = [
        _arrival(30.0, 2 + number, f"user-{number}", *_drawn(chance, chance.one_of(mix)))
        for number in range(300)
    ]
    return Workload("burst", _BURST, 8, RENDERING, (*sessions, *batch))


def deadline(seed: int) -> Workload:
    """Draw the last four hours before a deadline."""
    return Workload("deadline", _DEADLINE, 10, GRADING, tuple(deadline_arrivals(seed, GRADING)), again=True)


def _drawn(chance: Chance, asked: int | str) -> tuple[int | str, float]:
    """Draw a true run time in seconds for what a job asks."""
    if asked == INTERACTIVE:
        return asked, min(600.0, 10 + chance.exponential(60))
    if asked == ELASTIC:
        return asked, min(60.0, 0.3 + chance.exponential(chance.one_of({1.5: 0.85, 8.0: 0.15})))
    assert isinstance(asked, int)
    shortest, cap = ((0.2, 3.0), (2.0, 10.0), (6.0, 30.0))[asked - 1]
    run = chance.between(shortest, cap * 0.95)
    return asked, run * 1.6 if chance.part() < 0.03 else run


def _arrival(at: float, number: int, who: str, asked: int | str, run: float) -> Arrival:
    return Arrival(
        microseconds(at),
        f"job-{number}",
        who,
        max(1, microseconds(run)),
        level=asked if isinstance(asked, int) else None,
        interactive=asked == INTERACTIVE,
    )


_STEADY = (
    "2 400 jobs come to 8 slots, at times that know nothing of each other. Without the sessions they ask "
    "for seven tenths of the slots' time. 37 % ask for `fast` (3 s), 18 % for `medium` (10 s, limit 50 "
    "%), 4 % for `slow` (30 s, limit 25 %), 40 % are elastic, and 1 % are interactive sessions of about a "
    "minute. Three in a hundred of those who ask for a class may have asked for too short a one."
)
_BURST = (
    "8 slots are idle but for two interactive sessions. Then, at 30 s, 300 jobs come in one call, each "
    "from another submitter: 40 % `fast`, 20 % `medium`, 10 % `slow`, 30 % elastic, with the caps and "
    "limits of `steady`."
)
_DEADLINE = (
    "The last four hours before a deadline: 304 submitters send 2 947 submissions, the heaviest one 45 of "
    "them. The rate doubles every hour. Run times have a mean of 32 s, a median of 26 s and a maximum of "
    "111 s. There are 10 slots; the classes are `fast` (30 s), `medium` (60 s, limit 50 %) and `slow` "
    "(120 s, limit 25 %). Seven in ten ask for the class that holds their run, three in ten ask for none. "
    "A job that was cut is not submitted again."
)

WORKLOADS: dict[str, Callable[[int], Workload]] = {"steady": steady, "burst": burst, "deadline": deadline}
