"""A workload played under a policy, and the figures that it gives."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from benchmarks.figures.latency import percentile
from benchmarks.simulation.engine import Engine
from benchmarks.simulation.policies import Policy
from benchmarks.simulation.visit import Visit
from benchmarks.simulation.workloads import Workload
from maitred.core.settings import SECOND


@dataclass(frozen=True)
class Waits:
    """How long some jobs stood in line, in seconds."""

    seconds: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean wait; 0 of nobody."""
        return statistics.fmean(self.seconds) if self.seconds else 0.0

    def p(self, percent: float) -> float:
        """Give the wait that so many percent did not exceed."""
        return percentile(sorted(self.seconds), percent) if self.seconds else 0.0


@dataclass
class Play:
    """What became of everybody. What a job asked for is what it asked in the workload, under every policy."""

    workload: Workload
    policy: Policy
    visits: list[Visit]

    def waits(self, chosen: Callable[[Visit], bool] = lambda _: True) -> Waits:
        """Give the waits of those who stood in line."""
        return Waits(tuple(v.wait / SECOND for v in self.visits if not v.arrival.interactive and chosen(v)))

    def waits_of(self, asked: str) -> Waits:
        """Give the waits of those who asked for this."""
        return self.waits(lambda visit: self.asked[visit.arrival.id] == asked)

    @cached_property
    def asked(self) -> dict[str, str]:
        """What each job asked for in the workload."""
        return {arrival.id: self.workload.asked(arrival) for arrival in self.workload.arrivals}

    def count(self, code: str) -> int:
        """Count how many ended with this code."""
        return sum(visit.code == code for visit in self.visits)

    @property
    def available(self) -> int:
        """The time of all slots from the beginning until the last of them is free again."""
        return self.workload.slots * max(visit.end for visit in self.visits)

    @property
    def goodput(self) -> float:
        """The part of the slots' time that brought a result."""
        return sum(visit.useful for visit in self.visits) / self.available

    @property
    def utilisation(self) -> float:
        """The part of the slots' time in which they were taken, stops included."""
        return sum(visit.held for visit in self.visits) / self.available

    def wait_of_each(self) -> list[tuple[int, float]]:
        """Give for each submitter how many jobs it sent and their mean wait, the heaviest first."""
        waits: dict[str, list[float]] = {}
        for visit in self.visits:
            waits.setdefault(visit.arrival.submitter, []).append(visit.wait / SECOND)
        return sorted(((len(each), statistics.fmean(each)) for each in waits.values()), reverse=True)


def play(workload: Workload, policy: Policy, seed: int) -> Play:
    """Play it. The seed is that of the dice which the queue throws."""
    engine = Engine(policy.settings(workload), workload.slots, seed)
    return Play(workload, policy, list(engine.play(policy.arrivals(workload)).values()))
