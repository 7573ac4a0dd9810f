"""How the same people are served: the two policies for elastic jobs, and what they are compared with."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from benchmarks.simulation.visit import Arrival
from benchmarks.simulation.workloads import Workload
from maitred.core.classes import level_for
from maitred.core.settings import MINUTE, SECOND, Settings

Asks = Callable[[Workload, Arrival], Arrival]


def _as_they_ask(_workload: Workload, arrival: Arrival) -> Arrival:
    return arrival


def _as_long_as_they_take(workload: Workload, arrival: Arrival) -> Arrival:
    if arrival.interactive or arrival.level is not None:
        return arrival
    return arrival._replace(level=level_for(workload.classes, arrival.run) or len(workload.classes))


def _all_alike(_workload: Workload, arrival: Arrival) -> Arrival:
    return arrival if arrival.interactive else arrival._replace(level=1)


def _by_the_delay_policy(_workload: Workload, arrival: Arrival) -> Arrival:
    return arrival if arrival.interactive else arrival._replace(delay=None)


@dataclass(frozen=True)
class Policy:
    """One way to serve a workload: the queue's settings, and what people ask of such a queue."""

    name: str
    about: str
    more: dict[str, Any]
    asks: Asks = _as_they_ask
    classes: bool = True

    def settings(self, workload: Workload) -> Settings:
        """Give the queue's settings; without classes there is one, with the longest cap."""
        longest = workload.classes[-1].cap
        return Settings(
            classes=workload.classes if self.classes else (),
            time_limit=longest,
            order="newest-first",
            **self.more,
        )

    def arrivals(self, workload: Workload) -> Iterable[Arrival]:
        """Give the people, with what they ask of this queue."""
        return [self.asks(workload, arrival) for arrival in workload.arrivals]


BORROW = Policy(
    "borrow", "elastic jobs run on until somebody needs their slot; the default", {"elastic": "borrow"}
)
SQUEEZE = Policy(
    "squeeze", "elastic jobs take the longest class with room and are downgraded", {"elastic": "squeeze"}
)
SPECIFIC = Policy(
    "specific",
    "nobody is elastic: those who did not ask take the class that holds their run, as if they knew it",
    {},
    _as_long_as_they_take,
)
PLAIN = Policy(
    "plain",
    "one class with the longest cap, nobody is elastic: first come, first served",
    {},
    _all_alike,
    classes=False,
)
DELAYED = Policy(
    "borrow, delays",
    "as `borrow`, and each submission of the last 15 minutes delays the next by 60 s",
    {"elastic": "borrow", "per_recent": 60 * SECOND, "window": 15 * MINUTE},
    _by_the_delay_policy,
)


def policies_for(workload: Workload) -> list[Policy]:
    """List the policies that a workload is played with; delays matter where people submit again and again."""
    return [BORROW, SQUEEZE, SPECIFIC, PLAIN, *([DELAYED] if workload.again else [])]
