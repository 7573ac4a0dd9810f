"""Holding and letting go: a job, a submitter, a profile or a batch, with who did it and why.

A hold is a reason. A job goes on when none is left, so that letting one thing go does not start what
something else still holds.
"""

from typing import TYPE_CHECKING

from maitred.core.job import Submitter
from maitred.errors import NotFound
from maitred.service.document import Document
from maitred.service.house_document import profile_document

if TYPE_CHECKING:
    from maitred.service.desk import Desk


class HoldDesk:
    """What can be held in the queues of a desk; a batch is held at the desk for batches."""

    def __init__(self, desk: "Desk") -> None:
        self._desk = desk

    async def job(self, queue: str, id: str, *, by: str, reason: str = "") -> Document:
        """Hold a waiting job at once, a running one before its next stage.

        Raises `UnknownJob`, `AlreadyEnded` or `Interactive`.
        """
        await self._desk.store(queue).hold("job", id, by, reason)
        return await self._desk.read(queue, id)

    async def resume_job(self, queue: str, id: str) -> Document:
        """Take a job's own hold away; `UnknownJob`, or `NotHeld` if it has none."""
        await self._desk.store(queue).unhold("job", id)
        return await self._desk.read(queue, id)

    async def submitter(self, queue: str, who: Submitter, *, by: str, reason: str = "") -> Document:
        """Hold whatever a submitter has, as its places come up, and what it will submit."""
        await self._desk.store(queue).hold("submitter", str(who), by, reason)
        return await self._desk.submitter(queue, who)

    async def resume_submitter(self, queue: str, who: Submitter) -> Document:
        """Let a submitter's jobs go on; one that was not held stays as it is."""
        await self._desk.store(queue).unhold("submitter", str(who))
        return await self._desk.submitter(queue, who)

    async def profile(self, queue: str, name: str, *, by: str, reason: str = "") -> Document:
        """Hold whatever is of a profile; `NotFound` if the queue names its profiles and this is none."""
        await self._must_know(queue, name)
        await self._desk.store(queue).hold("profile", name, by, reason)
        return await self._profile(queue, name)

    async def resume_profile(self, queue: str, name: str) -> Document:
        """Let a profile's jobs go on; also of one that the settings no longer name."""
        await self._desk.store(queue).unhold("profile", name)
        return await self._profile(queue, name)

    async def _must_know(self, queue: str, name: str) -> None:
        known = (await self._desk.settings(queue)).profiles
        if known and name not in known:
            raise NotFound(f"queue {queue!r} has no profile {name!r}; it has {', '.join(known)}")

    async def _profile(self, queue: str, name: str) -> Document:
        status = await self._desk.store(queue).status()
        return profile_document(name, status.holds)
