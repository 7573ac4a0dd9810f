"""What goes into a simulation and what comes out: who arrives when, and what became of each."""

from dataclasses import dataclass
from typing import NamedTuple

COMPLETED = ""
DENIED = "denied"


class Arrival(NamedTuple):
    """A job as it arrives, with times in whole microseconds.

    `run` is how long it would take if nobody stopped it. `level` is the class that it asks for, None for an
    elastic one. `delay` is what the client sends, None lets the policy decide. Jobs with the same `at`
    that follow each other are one call.
    """

    at: int
    id: str
    submitter: str
    run: int
    level: int | None = None
    interactive: bool = False
    delay: int | None = 0


@dataclass(slots=True)
class Visit:
    """What became of an arrival: when it started and ended, and with which code, empty if it completed.

    `start` is None for an interactive job that was denied. `end` is when its slot was free again.
    """

    arrival: Arrival
    start: int | None = None
    end: int = 0
    code: str = COMPLETED

    @property
    def wait(self) -> int:
        """How long it stood in line."""
        return 0 if self.start is None else self.start - self.arrival.at

    @property
    def held(self) -> int:
        """How long it held its slot, the stop included."""
        return 0 if self.start is None else self.end - self.start

    @property
    def useful(self) -> int:
        """The part of that time that brought a result: all of its run if it completed, else nothing."""
        return self.arrival.run if self.start is not None and self.code == COMPLETED else 0
