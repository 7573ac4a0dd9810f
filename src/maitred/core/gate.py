"""What keeps a place from starting beside the floor, as a walk along the line sees it."""

from collections.abc import Mapping

from maitred.core.holds import Holds
from maitred.core.job import Job, Place
from maitred.core.space import Space

HELD_PER_WALK = 500


class Gate:
    """Lets pass, on one walk along these places, whoever is not held and has its space.

    Held jobs leave the line when a slot comes free. Until then so many of them may stand in it that a walk
    must not look at all: past a bound it lets nobody pass.
    """

    def __init__(self, jobs: Mapping[Place, Job], holds: Holds, space: Space) -> None:
        self._jobs, self._holds, self._space = jobs, holds, space
        self._used = space.used
        self._no_space = False
        self._met = 0

    def passes(self, place: Place) -> bool:
        """Tell whether only the floor keeps the place from starting."""
        lacking, job = place.lane.lacking, self._jobs[place]
        if (lacking and self._no_space) or self._met == HELD_PER_WALK:
            return False
        if self._holds.reason(job):
            self._met += 1
            return False
        if lacking and not self._space.fits(job, self._used):
            self._no_space = True
            return False
        return True

    def take(self, place: Place) -> None:
        """Count its space as taken."""
        if place.lane.lacking:
            self._used += self._jobs[place].space
