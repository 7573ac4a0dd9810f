"""Calls that hold a job, a submitter, a profile or a batch, and let it go on."""

from maitred.client.calling import Caller
from maitred.wire import BatchDocument, JobDocument, ProfileDocument, SubmitterDocument


class HoldCalls(Caller):
    """Holding and letting go; `reason` is shown to whoever waits."""

    async def hold_job(self, queue: str, id: str, reason: str = "") -> JobDocument:
        """Hold a job, at once if it waits, else before its next stage."""
        return JobDocument.model_validate(await self._hold(queue, "jobs", id, reason=reason))

    async def resume_job(self, queue: str, id: str) -> JobDocument:
        """Take a job's own hold away."""
        return JobDocument.model_validate(await self._call("POST", queue, "jobs", id, "resume"))

    async def hold_submitter(self, queue: str, type: str, id: str, reason: str = "") -> SubmitterDocument:  # noqa: A002 - the wire's word
        """Hold what a submitter has."""
        return SubmitterDocument.model_validate(
            await self._hold(queue, "submitters", type, id, reason=reason)
        )

    async def resume_submitter(self, queue: str, type: str, id: str) -> SubmitterDocument:  # noqa: A002 - the wire's word
        """Let a submitter's jobs go on."""
        answer = await self._call("POST", queue, "submitters", type, id, "resume", again=True)
        return SubmitterDocument.model_validate(answer)

    async def hold_profile(self, queue: str, name: str, reason: str = "") -> ProfileDocument:
        """Hold all jobs of a profile."""
        return ProfileDocument.model_validate(await self._hold(queue, "profiles", name, reason=reason))

    async def resume_profile(self, queue: str, name: str) -> ProfileDocument:
        """Let a profile's jobs go on."""
        return ProfileDocument.model_validate(
            await self._call("POST", queue, "profiles", name, "resume", again=True)
        )

    async def hold_batch(self, queue: str, id: str, reason: str = "") -> BatchDocument:
        """Hold a batch with its jobs."""
        return BatchDocument.model_validate(await self._hold(queue, "batches", id, reason=reason))

    async def resume_batch(self, queue: str, id: str) -> BatchDocument:
        """Let a batch go on."""
        return BatchDocument.model_validate(await self._call("POST", queue, "batches", id, "resume"))

    async def _hold(self, queue: str, *names: str, reason: str) -> object:
        answer: object = await self._call("POST", queue, *names, "hold", body={"reason": reason}, again=True)
        return answer
