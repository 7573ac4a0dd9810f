"""What runs say, keep and are told: output, artifacts, and what somebody types for them.

Whatever a run says carries its lease. What it says after its end, or after its job was deleted or moved
elsewhere, is refused. A run that was cancelled may say what it still has to say while it stops: that is added
to the record, which has ended, unless it has gone on since.
"""

from collections.abc import Sequence

from maitred.core.job import Job, Lease, Phase, Typed
from maitred.core.output import Artifact, ArtifactView, Output, Saying, merged, unique
from maitred.core.sayings import Spoken
from maitred.core.submitting import Submitting
from maitred.errors import LeaseLost, NotRunning, TooLarge

# A worker that has so many messages to read is given nothing more that somebody types.
UNREAD_BEFORE_TYPED = 256


class Speaking(Submitting):
    """The verbs of runs that speak, and of those who listen to them."""

    def say(self, worker: str, sayings: Sequence[Saying], now: int, dice: bytes) -> list[Lease]:
        """Keep what runs say; give the leases that are lost."""
        lost = []
        with self._verb(now, dice):
            for lease, parts, before in merged(sayings):
                if self._speaks(worker, lease):
                    spoken = self.sayings.of(lease.record)
                    self._say(self.jobs[lease.record], spoken.news(lease.token, parts, before))
                else:
                    lost.append(lease)
        return lost

    def keep(self, worker: str, lease: Lease, artifacts: Sequence[Artifact], now: int, dice: bytes) -> None:
        """Keep these files of a run's job, and no others."""
        with self._verb(now, dice):
            if not self._speaks(worker, lease):
                raise LeaseLost
            kept = unique(artifacts)
            size, limit = sum(len(each.data) for each in kept), self.settings.artifact_limit
            if size > limit:
                raise TooLarge(size, limit, "what it keeps")
            self.sayings.keep(lease.record, kept)
            self.jobs[lease.record].artifacts = tuple(
                ArtifactView(each.name, each.media_type, len(each.data)) for each in kept
            )

    def type_in(self, record: int, data: bytes, size: tuple[int, int] | None, now: int, dice: bytes) -> bool:
        """Send what somebody types to the run of a record; False if its worker has too much to read."""
        with self._verb(now, dice):
            job = self.jobs.get(record)
            if job is None or job.phase is not Phase.RUNNING:
                raise NotRunning
            worker, hold = self._hold_of(job)
            if len(self.inboxes.get(worker.name, ())) >= UNREAD_BEFORE_TYPED:
                return False
            if data or size:
                self._send(worker.name, Typed(Lease(record, hold.token), data, size))
            return True

    def output(self, id: str, version: int | None, after: int, limit: int) -> Output | None:
        """Give what a job said after a piece, None if there is no such job."""
        job = self._version(id, version)
        if job is None:
            return None
        spoken = self.sayings.streams.get(job.record, Spoken())
        chunks = [chunk for chunk in spoken.chunks if chunk.number > after][:limit]
        ended = job.phase is Phase.ENDED and not self.still_stops(job)
        return Output(job.record, chunks, spoken.first, spoken.last, ended)

    def artifact(self, id: str, version: int | None, name: str) -> Artifact | None:
        """Give one file that is kept of a job."""
        job = self._version(id, version)
        files = self.sayings.files.get(job.record, ()) if job else ()
        return next((each for each in files if each.name == name), None)

    def _speaks(self, worker: str, lease: Lease) -> bool:
        hold = self._held(worker, lease)
        return hold is not None and self._is_run_of(worker, hold)

    def _version(self, id: str, version: int | None) -> Job | None:
        versions = self.versions(id) if id in self.newest else []
        return next((job for job in versions if version in (None, job.version)), None)
