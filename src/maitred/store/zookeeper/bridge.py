"""From the tree to the line: a job as the tree has it, written as the line keeps it.

The tree is the truth. Whatever the line knows of a job carries the version of the state that it came from, so
bringing a job over can be done at any time and any number of times: what is older is passed over. A job that
a live run has is left alone, since its worker writes to both.
"""

from collections.abc import Iterable, Sequence

from maitred.core.job import Restored, View
from maitred.core.settings import Settings
from maitred.core.stages import FAILED
from maitred.errors import Conflict
from maitred.store.port import Store
from maitred.store.zookeeper.ledger import Ledger
from maitred.store.zookeeper.records import READ_TOGETHER, JobEntry
from maitred.store.zookeeper.restoring import job_of
from maitred.store.zookeeper.tree import DELETED, ENDED


class Bridge:
    """The line and the tree of one queue."""

    def __init__(self, line: Store, ledger: Ledger, settings: Settings) -> None:
        self.line, self.ledger, self.settings = line, ledger, settings
        self.queue = line.queue
        self.session, self.tree, self.jobs = ledger.session, ledger.tree, ledger.jobs

    def lock(self, jid: str) -> str:
        """Give the path of a job's lock."""
        return self.tree.job(jid, "lock")

    def stage_of(self, entry: JobEntry) -> int:
        """Give the number of the stage that a job of the tree runs in, or waits for."""
        return max(1, entry.standing.stage)

    async def bring(self, jids: Iterable[str], *, even_run: bool = False) -> dict[str, Restored]:
        """Let the line know jobs as the tree has them; give what that changed.

        A job that somebody has locked is left alone if the line knows it, unless `even_run`.
        """
        outcomes: dict[str, Restored] = {}
        wanted = list(dict.fromkeys(jids))
        for begin in range(0, len(wanted), READ_TOGETHER):
            some = wanted[begin : begin + READ_TOGETHER]
            entries = [entry for entry in await self.read(some) if entry is not None]
            if not even_run:
                entries = await self._at_rest(entries)
            outcomes |= await self.restore(entries)
        return outcomes

    async def read(self, jids: Sequence[str]) -> list[JobEntry | None]:
        """Read jobs of the tree; one that is spoilt is not there, and `check` names it."""
        entries = await self.ledger.reader.jobs_or_faults(jids)
        return [entry if isinstance(entry, JobEntry) else None for entry in entries]

    async def restore(self, entries: Sequence[JobEntry]) -> dict[str, Restored]:
        """Write entries to the line; those that are told to be deleted go from it."""
        for entry in entries:
            if entry.state == DELETED:
                await self.drop(entry.jid, job_of(entry, self.settings).id)
        entries = [entry for entry in entries if entry.state != DELETED]
        # An older version first: the line makes none that is older than what it has.
        entries = sorted(entries, key=lambda entry: entry.standing.version)
        if not entries:
            return {}
        answers = await self.line.restore([job_of(entry, self.settings) for entry in entries])
        outcomes = dict(zip((entry.jid for entry in entries), answers, strict=True))
        for entry in entries:
            if outcomes[entry.jid] == "ignored" and entry.state not in ENDED:
                await self._end_if_outdated(entry)
        return outcomes

    async def drop(self, jid: str, id: str) -> None:
        """Take a job out of the line that the tree has no more."""
        [view] = await self.line.read([id])
        if view is not None and view.job.ledger == jid:
            await self.line.remove(id)

    async def version(self, id: str, version: int) -> View | None:
        """Show one version of a job as the line has it."""
        [view] = await self.line.read([id], version)
        return view

    async def said(self, record: int, entry: JobEntry) -> None:
        """Note in the line that the tree has a job in this state."""
        await self.line.said(record, entry.state, entry.mark)

    async def _at_rest(self, entries: Sequence[JobEntry]) -> list[JobEntry]:
        """Leave out what is being run, if the line knows it."""
        locks = await self.session.stat_all([self.lock(entry.jid) for entry in entries])
        return [
            entry
            for entry, lock in zip(entries, locks, strict=True)
            if lock is None or not await self._knows(entry)
        ]

    async def _knows(self, entry: JobEntry) -> bool:
        job = job_of(entry, self.settings)
        view = await self.version(job.id, job.version)
        return view is not None and view.job.ledger == entry.jid

    async def _end_if_outdated(self, entry: JobEntry) -> None:
        """End a job in the tree whose key has a newer version in the line: nobody will ever run it.

        A PUT that is under way has written the tree and not yet the line; its job is left alone.
        """
        if entry.modified_at + self.settings.lease > self.ledger.clock() or await self._knows(entry):
            return
        [newest] = await self.line.read([job_of(entry, self.settings).id])
        locked = await self.session.stat(self.lock(entry.jid))
        if newest is None or newest.job.version < entry.standing.version or locked:
            return
        try:
            await self.jobs.change(
                entry, FAILED, code="superseded", message="a newer version took its place", run=""
            )
        except Conflict:
            return  # it goes on after all
