"""The health of a worker: whether it takes jobs, told from what it did and not from what it believes."""

from collections.abc import Sequence
from dataclasses import dataclass

from maitred.service.document import Document
from maitred.service.moment import iso

# A worker parks for half of this at most, so one that is well is never silent for longer.
TAKING_WITHIN = 10.0


@dataclass(frozen=True, slots=True)
class Health:
    """One worker at a moment. It takes jobs if it took one or parked `TAKING_WITHIN` ago at most.

    `quiet` are the seconds since then, None if it never did. `away_since` is when the store stopped to answer
    it, in microseconds, None if it answers.
    """

    queue: str
    worker: str
    slots: int
    busy: int
    stuck: int
    stopping: bool
    quiet: float | None
    away_since: int | None

    @property
    def trouble(self) -> str:
        """Why it takes no jobs; empty if it does."""
        if self.stopping:
            return "it is stopping"
        if self.quiet is None:
            return "it has not joined yet"
        if self.quiet > TAKING_WITHIN:
            why = (
                "a handler may block its event loop"
                if self.away_since is None
                else "the store does not answer"
            )
            return f"it neither took nor parked for {self.quiet:.0f} s: {why}"
        if 0 < self.slots <= self.stuck:
            return "all its slots are held by handlers that do not stop"
        return ""

    def document(self) -> Document:
        """Give it as JSON has it."""
        return {
            "queue": self.queue,
            "worker": self.worker,
            "taking": not self.trouble,
            "trouble": self.trouble or None,
            "slots": self.slots,
            "busy": self.busy,
            "stuck": self.stuck,
            "quiet": self.quiet and round(self.quiet, 3),
            "store_away_since": None if self.away_since is None else iso(self.away_since),
        }


def trouble(workers: Sequence[Health]) -> str:
    """Say which worker takes no jobs, and why; empty if all do."""
    return "; ".join(f"the worker of {each.queue}: {each.trouble}" for each in workers if each.trouble)
