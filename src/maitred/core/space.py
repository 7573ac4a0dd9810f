"""The space budget of a queue: who needs some of it before it starts, whether it fits, and who has it.

It is given in line order to jobs that enter `provisioning`, and to retried ones past it that gave it back.
"""

from maitred.core.floor import Floor
from maitred.core.job import Job


class Space:
    """What is taken of one queue's budget; the budget is a setting, as the floor has them."""

    def __init__(self, floor: Floor) -> None:
        """Begin with nothing taken."""
        self._floor = floor
        self.used = 0

    @property
    def budget(self) -> int:
        """How much there is in all; 0 if the queue has no budget."""
        return self._floor.settings.space

    def lacks(self, job: Job) -> bool:
        """Tell whether a job has to be given space before it starts."""
        first, stage = self._floor.settings.provisioning, max(job.stage, 1)
        if not first or job.provisioned or stage < first:
            return False
        return stage == first or job.space > 0

    def never_fits(self, job: Job) -> bool:
        """Tell whether a job needs more than there is in all."""
        return 0 < self.budget < job.space

    def fits(self, job: Job, used: int) -> bool:
        """Tell whether a job's space is left where so much is taken."""
        return not self.budget or job.space <= self.budget - used

    def take(self, job: Job) -> None:
        """Give a job the space that it lacks."""
        job.lacking, job.provisioned = False, True
        self.used += job.space

    def give_back(self, job: Job) -> None:
        """Take a job's space back, once."""
        if job.provisioned:
            job.provisioned = False
            self.used -= job.space

    def need(self, job: Job, space: int) -> None:
        """Let a job need so much from now on; whoever has space has that much then."""
        if job.provisioned:
            self.used += space - job.space
        job.space = space
