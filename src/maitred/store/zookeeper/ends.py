"""The end of a run in the tree: the next stage, the end of the job, or another try later.

Each is one step that checks the run's token and its lock. What the tree refuses is not ours to end; what it
took is remembered until the line has heard of it, so that saying it twice ends nothing twice.
"""

from typing import Any

from maitred.core.job import Finish
from maitred.errors import Conflict, NotFound, TooLarge
from maitred.store.zookeeper.bridge import Bridge
from maitred.store.zookeeper.records import JobEntry
from maitred.store.zookeeper.runs import Run, Runs
from maitred.store.zookeeper.session import Check, Delete, Op


class Ends:
    """Ends runs of one process."""

    def __init__(self, bridge: Bridge, runs: Runs) -> None:
        self.bridge, self.runs = bridge, runs

    async def end(self, run: Run, result: Finish, *, carries_on: bool) -> Finish | None:
        """End a run in the tree; give what the line is to hear, None if the run is not ours any more.

        Whoever `carries_on` with the next stage keeps the lock for it.
        """
        if run.told is not None:
            return run.told
        if run.forsaken:
            return None
        try:
            try:
                entry = await self._end(run, result, carries_on=carries_on)
            except TooLarge as error:
                result = Finish(result.lease, "result", str(error), said=result.said)
                entry = await self._end(run, result, carries_on=False)
        except (Conflict, NotFound):
            return None
        run.entry = entry
        run.told = result._replace(status=entry.mark)
        return run.told

    async def _end(self, run: Run, result: Finish, *, carries_on: bool) -> JobEntry:
        jobs, token, jid = self.bridge.jobs, run.start.lease.token, run.jid
        lock = self.bridge.lock(jid)
        said: dict[str, Any] = {
            "priority": result.priority,
            "space": result.space,
            "identifiers": result.identifiers,
        }
        settings = self.bridge.settings
        last = self.bridge.stage_of(run.entry) == len(settings.stages)
        goes_on = carries_on and not result.code and not last
        ops: list[Op] = [Check(lock, 0) if goes_on else Delete(lock)]
        if result.code and result.transient and run.start.attempt < settings.attempts:
            entry = await jobs.step_back(jid, token, also=ops, message=result.message, **said)
        elif result.code:
            entry = await jobs.fail(jid, token, result.code, result.message, seen=run.entry, also=ops, **said)
        else:
            entry = await jobs.advance(
                jid, token, result.result, message=result.message, seen=run.entry, also=ops, **said
            )
        if not goes_on:
            self.runs.locked.pop(jid, None)
        return entry
