"""Holds: the reasons for which jobs do not go on, and which jobs each of them keeps.

A hold of a job is its own. A hold of many (a batch, a submitter, a profile) is a flag: it is applied when a
place comes up or a stage ends. A held job is listed under one reason that is in force; when that is taken
away, the jobs listed there come back, or move to another reason that still holds them, some in each step.
"""

from collections.abc import Iterator

from maitred.core.job import Held, HoldKind, Job

OWN = "job"


def flag(kind: HoldKind, name: str) -> str:
    """Name a hold of many."""
    return f"{kind}:{name}"


def flags_of(job: Job) -> Iterator[str]:
    """Name the holds of many that would concern a job, the nearest first."""
    if job.batch:
        yield flag("batch", job.batch)
    yield flag("submitter", str(job.submitter))
    if job.profile:
        yield flag("profile", job.profile)


class Holds:
    """The flags of one queue, the jobs that are held by each, and those that were taken away."""

    def __init__(self) -> None:
        """Begin with nobody held."""
        self.flags: dict[str, Held] = {}
        self.kept: dict[str, set[int]] = {}
        self.returning: list[str] = []

    def reason(self, job: Job) -> str | None:
        """Name what holds a job, or will before its next stage; None if nothing does."""
        if job.hold:
            return OWN
        return next((name for name in flags_of(job) if name in self.flags), None)

    def all_of(self, job: Job) -> tuple[Held, ...]:
        """Give all reasons that hold a job."""
        own = (job.hold,) if job.hold else ()
        return (*own, *(self.flags[name] for name in flags_of(job) if name in self.flags))

    def raise_flag(self, held: Held) -> None:
        """Hold all that this concerns; one that was just taken away keeps whom it still has."""
        name = flag(held.kind, held.name)
        self.flags[name] = held
        if name in self.returning:
            self.returning.remove(name)

    def lower_flag(self, kind: HoldKind, name: str) -> bool:
        """Take a flag away; tell whether it was there. Its jobs come back step by step."""
        lowered = flag(kind, name)
        if self.flags.pop(lowered, None) is None:
            return False
        if self.kept.get(lowered):
            self.returning.append(lowered)
        return True

    def keep(self, job: Job, reason: str) -> None:
        """List a held job under its reason; its own needs no list."""
        if reason != OWN:
            self.kept.setdefault(reason, set()).add(job.record)

    def drop(self, job: Job) -> None:
        """Forget that a job is held."""
        for name in flags_of(job):
            self._discard(name, {job.record})

    def pop(self, most: int) -> list[int]:
        """Take some jobs off the lists of what was taken away, oldest first."""
        taken: list[int] = []
        while self.returning and len(taken) < most:
            name = self.returning[0]
            some = sorted(self.kept.get(name, ()))[: most - len(taken)]
            taken += some
            self._discard(name, set(some))
        return taken

    def _discard(self, name: str, records: set[int]) -> None:
        left = self.kept.get(name, set()) - records
        if left:
            self.kept[name] = left
            return
        self.kept.pop(name, None)
        if name in self.returning:
            self.returning.remove(name)
