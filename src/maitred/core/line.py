"""The Line: who goes next.

A place belongs to a submitter, not to a job: when it comes up, the job on top of the submitter's stack takes
it. Sort a submitter's places of one lane by (release, arrival); the k-th serves the k-th job of its stack.
Some jobs have a place of their own instead: no stack, no nonce.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator

from maitred.core.job import Job, Lane, Place, Submitter

DELAY_STEP = 10_000_000


def _order(place: Place) -> tuple[int, int]:
    return (place.release, place.arrival)


class Line:
    """The places of one queue and the stacks of jobs behind them."""

    def __init__(self) -> None:
        """Begin with nobody in line."""
        self.pools: dict[tuple[Lane, Submitter], list[Place]] = {}
        self.stacks: dict[tuple[Lane, Submitter], list[int]] = {}
        self.owned: dict[int, Place] = {}

    def __iter__(self) -> Iterator[Place]:
        """Go through all places, in no order."""
        for pool in self.pools.values():
            yield from pool
        yield from self.owned.values()

    def in_order(self, now: int) -> list[Place]:
        """Give all places in line order: what is due in band order, then what is not, by release."""
        return sorted(self, key=lambda place: place.rank(now))

    def join(self, job: Job, *, oldest_first: bool) -> None:
        """Give the job a place of its submitter's at its release and arrival, and put it on the stack."""
        key = (job.lane, job.submitter)
        insort(self.pools.setdefault(key, []), self._place(job, owner=0), key=_order)
        stack = self.stacks.setdefault(key, [])
        stack.insert(len(stack) if oldest_first else 0, job.record)

    def join_own(self, job: Job) -> None:
        """Give the job a place of its own at its release and arrival."""
        self.owned[job.record] = self._place(job, owner=job.record)

    def place_of(self, job: Job) -> Place:
        """Give the place that the job would take now: its own, or that of its rank in the stack."""
        if job.own:
            return self.owned[job.record]
        key = (job.lane, job.submitter)
        return self.pools[key][self.stacks[key].index(job.record)]

    def job_for(self, place: Place) -> int:
        """Give the record of the job that this place would serve now."""
        if place.owner:
            return place.owner
        key = (place.lane, place.submitter)
        return self.stacks[key][bisect_left(self.pools[key], _order(place), key=_order)]

    def leave(self, job: Job) -> Place:
        """Take the job out of line, and with it the place of its rank; nobody else is moved."""
        if job.own:
            return self.owned.pop(job.record)
        key = (job.lane, job.submitter)
        rank = self.stacks[key].index(job.record)
        self.stacks[key].pop(rank)
        place = self.pools[key].pop(rank)
        if not self.stacks[key]:
            del self.stacks[key], self.pools[key]
        return place

    def postpone(self, job: Job, now: int) -> None:
        """Send the job behind all of its band and priority: last release, bottom of its stack, same nonce."""
        place = self.leave(job)
        peers = (p.release for p in self if p.lane[:2] == place.lane[:2])
        later = place._replace(release=max(place.release, now, *peers) + DELAY_STEP)
        job.release, job.arrival = later.release, later.arrival
        if job.own:
            self.owned[job.record] = later
            return
        key = (place.lane, place.submitter)
        insort(self.pools.setdefault(key, []), later, key=_order)
        self.stacks.setdefault(key, []).append(job.record)

    @staticmethod
    def _place(job: Job, owner: int) -> Place:
        return Place(job.lane, job.release, job.arrival, job.submitter, owner)
