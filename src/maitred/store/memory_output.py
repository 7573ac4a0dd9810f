"""What runs say and keep in the reference store: each verb is the core's own, with the clock and the dice."""

from collections.abc import Sequence

from maitred.core.job import Lease
from maitred.core.output import Artifact, Output, Saying
from maitred.store.memory_ledger import LedgerVerbs


class OutputVerbs(LedgerVerbs):
    """The part of a queue in memory that runs speak to."""

    async def say(self, worker: str, sayings: Sequence[Saying]) -> list[Lease]:
        """Keep what runs say."""
        lost = self._house.say(worker, sayings, self._clock(), self._dice())
        self._ring()
        return lost

    async def output(self, id: str, version: int | None, after: int, limit: int) -> Output | None:
        """Show what a job said."""
        return self._house.output(id, version, after, limit)

    async def keep(self, worker: str, lease: Lease, artifacts: Sequence[Artifact]) -> None:
        """Keep the files of a run."""
        self._house.keep(worker, lease, artifacts, self._clock(), self._dice())
        self._ring()

    async def artifact(self, id: str, version: int | None, name: str) -> Artifact | None:
        """Give a file that is kept of a job."""
        return self._house.artifact(id, version, name)

    async def type_in(self, record: int, data: bytes, size: tuple[int, int] | None) -> bool:
        """Tell the worker of a run what somebody types for it."""
        sent = self._house.type_in(record, data, size, self._clock(), self._dice())
        self._ring()
        return sent
