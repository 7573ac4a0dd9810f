"""What a worker's verbs do where the ledger is a tree: the tree hears first, then the line answers."""

import asyncio
from collections.abc import Sequence

from maitred.core.job import Finish, Lease, Message, Shift, Start
from maitred.core.settings import SECOND
from maitred.store.zookeeper.batching import Batching
from maitred.store.zookeeper.bridge import Bridge
from maitred.store.zookeeper.ends import Ends
from maitred.store.zookeeper.runs import Run, Runs
from maitred.store.zookeeper.tree import ENDED


class Shifts:
    """The verbs of the workers of this process."""

    def __init__(self, bridge: Bridge, runs: Runs, batching: Batching) -> None:
        self.bridge, self.runs, self.batching = bridge, runs, batching
        self.ends = Ends(bridge, runs)
        self._serves: dict[str, frozenset[str]] = {}
        self._parked: dict[str, asyncio.Task[list[Message]]] = {}

    async def close(self) -> None:
        """Wait for no messages any more."""
        for task in self._parked.values():
            task.cancel()
        await asyncio.gather(*self._parked.values(), return_exceptions=True)

    async def join(self, worker: str, slots: int, serves: Sequence[str], about: bytes = b"") -> Shift:
        """Let a worker in."""
        self._serves[worker] = frozenset(serves)
        return await self._answer(worker, await self.bridge.line.join(worker, slots, serves, about))

    async def take(self, worker: str) -> Shift:
        """Give the worker what it has room for."""
        return await self._answer(worker, await self.bridge.line.take(worker))

    async def leave(self, worker: str) -> Shift:
        """Take the worker's free slots off the floor."""
        return await self._answer(worker, await self.bridge.line.leave(worker))

    async def renew(self, worker: str, held: Sequence[Lease]) -> Shift:
        """Extend the worker's lease; it must not wait for the tree, so what that is slow with comes later."""
        shift = await self.bridge.line.renew(worker, held)
        if not shift.known:
            self.runs.abandon(worker)
            return shift
        self.runs.gather_strays(worker, held, shift)
        lost = [*shift.lost, *self.runs.forsaken(lease for lease in held if lease not in shift.lost)]
        patience = self.bridge.settings.lease / SECOND / 12
        starts = await self.runs.take_up(worker, shift.starts, patience)
        return shift._replace(lost=lost, starts=starts)

    async def hand_back(self, worker: str, leases: Sequence[Lease]) -> Shift:
        """Put jobs back at the front."""
        for lease in leases:
            if run := self.runs.taken.get(lease):
                await self.runs.step_back(run)
        return await self._answer(worker, await self.bridge.line.hand_back(worker, leases))

    async def finish(self, worker: str, results: Sequence[Finish]) -> Shift:
        """End runs in the tree, then in the line, and give the worker what comes next."""
        told, refused = await self._end_all(worker, results)
        starts: list[Start] = []
        for result in refused:
            starts += await self._give_up(worker, result)
        shift = await self.bridge.line.finish(worker, told)
        shift = shift._replace(starts=starts + shift.starts)
        runs = [run for result in told if (run := self.runs.taken.pop(result.lease, None))]
        await self._settle(runs, shift)
        given = await self.runs.take_up(worker, shift.starts)
        lost = [result.lease for result in refused]
        return shift._replace(lost=[*lost, *shift.lost], starts=given)

    async def _end_all(self, worker: str, results: Sequence[Finish]) -> tuple[list[Finish], list[Finish]]:
        """End runs in the tree; give what the line is to hear, and what is not ours any more."""

        async def end(result: Finish) -> Finish | None:
            run = self.runs.taken.get(result.lease)
            if run is None:
                # A job that is not in the tree has no version of its state there.
                return None if result.status else result
            return await self.ends.end(run, result, carries_on=self._serves_next(worker, run))

        answers = await asyncio.gather(*map(end, results))
        told = [answer for answer in answers if answer]
        refused = [each for each, answer in zip(results, answers, strict=True) if answer is None]
        return told, refused

    def _serves_next(self, worker: str, run: Run) -> bool:
        settings, stage = self.bridge.settings, self.bridge.stage_of(run.entry)
        if stage >= len(settings.stages):
            return False
        return settings.need(stage + 1) in self._serves.get(worker, ())

    async def _give_up(self, worker: str, result: Finish) -> list[Start]:
        """Hand a lease back whose run the tree does not count as ours; give what the line answers.

        The line hears what a cancelled run had done: it adds that, and how the job ended stays.
        """
        line, lease = self.bridge.line, result.lease
        run = self.runs.taken.get(lease)
        if run is not None:
            await self.runs.step_back(run)
            await self.bridge.bring([run.jid])
        view = (await line.records([lease.record])).views.get(lease.record)
        if view and view.stopping:
            return (await line.finish(worker, [result])).starts
        return (await line.hand_back(worker, [lease])).starts

    async def _settle(self, runs: Sequence[Run], shift: Shift) -> None:
        """See to what the end of runs leaves: locks, batches, and a line that did not hear of it in time."""
        carried = {start.ledger for start in shift.starts}
        for run in runs:
            if run.jid not in carried:
                await self.runs.unlock(run.jid)
        if behind := [run.jid for run in runs if run.start.lease in shift.lost]:
            await self.bridge.bring(behind)
        batches = {run.entry.batch for run in runs if run.entry.batch and run.entry.state in ENDED}
        for bid in batches:
            await self.batching.settle(bid)

    async def park(self, worker: str, timeout: float) -> list[Message]:
        """Wait for messages: from the line, or from here."""
        bell = self.runs.rung.setdefault(worker, asyncio.Event())
        parked = self._parked.pop(worker, None)
        if parked is None:
            parked = asyncio.ensure_future(self.bridge.line.park(worker, timeout))
        ringing = asyncio.ensure_future(bell.wait())
        try:
            await asyncio.wait([parked, ringing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            ringing.cancel()
            if not parked.done():
                self._parked[worker] = parked
        bell.clear()
        messages = self.runs.inboxes.pop(worker, [])
        if not parked.done():
            return messages
        found = parked.result()
        starts = [message for message in found if isinstance(message, Start)]
        given = {start.lease: start for start in await self.runs.take_up(worker, starts)}
        for message in found:
            if not isinstance(message, Start):
                messages.append(message)
            elif message.lease in given:
                messages.append(given[message.lease])
        return messages

    async def _answer(self, worker: str, shift: Shift) -> Shift:
        return shift._replace(starts=await self.runs.take_up(worker, shift.starts))
