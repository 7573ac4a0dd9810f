"""Comparing line and tree, and bringing the line after the tree: after a loss, at a start, and on a watch.

Every job of the tree that has not ended is brought into the line; what the line has and the tree has not, or
has as ended, is ended there too; holds are the tree's. It may run on a live line, and by several at once.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from maitred.core.batch import BatchState
from maitred.core.job import HoldKind, Phase, View
from maitred.core.stages import HELD
from maitred.errors import Conflict, NotFound
from maitred.store.zookeeper.bridge import Bridge
from maitred.store.zookeeper.payloads import Reason
from maitred.store.zookeeper.records import READ_TOGETHER, JobEntry
from maitred.store.zookeeper.tree import ENDED

MOMENT = 0.2
PAGE = 500


@dataclass(slots=True)
class Tally:
    """What was done: jobs that came into the line, were changed, or went from it, and holds."""

    made: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    holds: list[str] = field(default_factory=list)

    def note(self, outcomes: Mapping[str, str]) -> None:
        """Count what restoring answered."""
        self.made += [jid for jid, outcome in outcomes.items() if outcome == "made"]
        self.changed += [jid for jid, outcome in outcomes.items() if outcome == "changed"]

    def sentences(self) -> Iterator[tuple[str, str]]:
        """Give a stable code and a sentence for each thing that was done."""
        yield from (("made", f"{jid} came into the line") for jid in self.made)
        yield from (("changed", f"{jid} is in the line as the ledger has it") for jid in self.changed)
        yield from (
            ("removed", f"{jid} is not in the ledger, and went from the line") for jid in self.removed
        )
        yield from (("hold", f"{hold} is held as the ledger says") for hold in self.holds)


class Reconciling:
    """Brings the line of one queue after its tree."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge, self.ledger = bridge, bridge.ledger

    async def reconcile(self, *, ended: bool = True) -> Tally:
        """Compare everything once, or all but what has `ended` in the line, which may be very much."""
        tally = Tally()
        flags = await self._holds(tally)
        seen: set[str] = set()
        chunk: list[JobEntry] = []
        async for entry in self.ledger.unended():
            seen.add(entry.jid)
            chunk.append(await self._freed(entry, flags))
            if len(chunk) == READ_TOGETHER:
                tally.note(await self._bring(chunk))
                chunk = []
        tally.note(await self._bring(chunk))
        await self._end_strays(seen, tally, ended=ended)
        return tally

    async def follow(self) -> AsyncIterator[Tally]:
        """Compare everything, and then what moves in the tree, without end; give what each look changed."""
        changes = self.ledger.changes()
        await changes.everything()
        yield await self.reconcile(ended=False)
        async for jids in changes.follow():
            yield await self._look(sorted(jids))

    async def _look(self, jids: Sequence[str]) -> Tally:
        """Bring jobs over that somebody moved; of those that still move, their mover tells the line."""
        tally = Tally()
        paths = [self.bridge.tree.job(jid, "status") for jid in jids]
        before = await self.bridge.session.stat_all(paths)
        await asyncio.sleep(MOMENT)
        after = await self.bridge.session.stat_all(paths)
        rest = [
            jid
            for jid, old, new in zip(jids, before, after, strict=True)
            if old and new and old.version == new.version
        ]
        tally.note(await self.bridge.bring(rest))
        return tally

    async def _bring(self, entries: Sequence[JobEntry]) -> Mapping[str, str]:
        return await self.bridge.bring([entry.jid for entry in entries])

    # ---------------------------------------------------------------- holds

    async def _holds(self, tally: Tally) -> set[tuple[str, str]]:
        """Give the line the tree's holds of submitters, profiles and batches; name them."""
        wanted = {(held.kind, held.name): held for held in await self.ledger.holds()}
        for bid in await self.ledger.batches.ids():
            entry = await self.ledger.reader.sound_batch(bid, whole=False)
            if entry and entry.batch.state is BatchState.HELD:
                wanted["batch", bid] = entry.expansion.hold or Reason("batch", bid)
        known = {(held.kind, held.name): held for held in (await self.bridge.line.status()).holds}
        for key in wanted.keys() - known.keys():
            held = wanted[key]
            await self.bridge.line.hold(cast(HoldKind, held.kind), held.name, held.by, held.reason)
            tally.holds.append(":".join(key))
        for key in known.keys() - wanted.keys():
            await self.bridge.line.unhold(known[key].kind, key[1])
            tally.holds.append(":".join(key))
        return set(wanted)

    async def _freed(self, entry: JobEntry, flags: set[tuple[str, str]]) -> JobEntry:
        """Let a job go on in the tree that was held by flags which are there no more."""
        holds = entry.standing.holds
        gone = [held for held in holds if held.kind != "job" and (held.kind, held.name) not in flags]
        if entry.state != HELD or not gone or len(gone) < len(holds):
            return entry
        try:
            for held in gone:
                entry = await self.bridge.jobs.unhold(entry.jid, held.kind, held.name)
        except (Conflict, NotFound):
            pass  # somebody else has moved it
        return entry

    # ---------------------------------------------------------------- what only the line has

    async def _end_strays(self, seen: set[str], tally: Tally, *, ended: bool) -> None:
        """End in the line what the tree has ended, and forget what it has forgotten.

        That moves those who come after in the lists, so all are looked at first.
        """
        behind: list[str] = []
        gone: list[View] = []
        async for views in self.kept(ended=ended):
            asked = [
                view
                for view in views
                if view.job.ledger and (view.job.phase is Phase.ENDED or view.job.ledger not in seen)
            ]
            entries = await self.bridge.read([view.job.ledger for view in asked])
            for view, entry in zip(asked, entries, strict=True):
                if entry is None:
                    gone.append(view)
                elif entry.state in ENDED and view.job.phase is not Phase.ENDED:
                    behind.append(entry.jid)
        for view in gone:
            await self._forget(view, tally)
        tally.note(await self.bridge.bring(behind))

    async def _forget(self, view: View, tally: Tally) -> None:
        jid = view.job.ledger
        if await self.bridge.session.stat(self.bridge.tree.job(jid, "status")) is None:
            await self.bridge.drop(jid, view.job.id)
            tally.removed.append(jid)

    async def kept(self, *, ended: bool = True) -> AsyncIterator[list[View]]:
        """Show all newest versions that the line has, page by page; whoever moves may be shown twice."""
        line = self.bridge.line
        yield await line.running()
        cursor: bytes | None = None
        while True:
            page = await line.line(cursor, PAGE)
            yield page.views
            cursor = page.next
            if cursor is None:
                break
        for listing in (line.held, line.ended) if ended else (line.held,):
            offset = 0
            while True:
                views = (await listing(offset, PAGE)).views
                if not views:
                    break
                yield views
                offset += len(views)
