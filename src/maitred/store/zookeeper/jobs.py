"""The verbs on a job in the tree: each is one `multi` with a check of the version of its status.

Status, index entry and the bucket of the batch move together, or nothing does. Every change gives the status
a new version, so whoever saw an older one is refused (`Overtaken`). Every change also leaves a token: when
the connection is lost while writing, that tells whether the write took place.
"""

import contextlib
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import msgspec

from maitred.core.batch import BatchState
from maitred.core.job import Order
from maitred.core.stages import COMPLETED, FAILED, HELD, PENDING, check_move, last_successful
from maitred.errors import (
    AlreadyEnded,
    BatchReporting,
    LockLost,
    NotFailed,
    Overtaken,
    UnknownJob,
)
from maitred.store.zookeeper import payloads
from maitred.store.zookeeper.payloads import Reason
from maitred.store.zookeeper.records import JobEntry, Reader
from maitred.store.zookeeper.session import Check, Create, Delete, Op, Put, Refused, Session, certain
from maitred.store.zookeeper.tree import DELETED, ENDED, FACTS, Tree

Clock = Callable[[], int]


class Jobs:
    """Changes jobs of one tree."""

    def __init__(self, queue: str, session: Session, reader: Reader, clock: Clock) -> None:
        self.queue, self.session, self.reader, self.clock = queue, session, reader, clock
        self.tree: Tree = reader.tree
        self.stages = reader.stages

    async def read(self, jid: str) -> JobEntry:
        """Read a job; UnknownJob if there is none."""
        entry = await self.reader.job(jid)
        if entry is None:
            raise UnknownJob(self.queue, jid)
        return entry

    # ---------------------------------------------------------------- moves

    async def start(
        self, entry: JobEntry, run: bytes, attempt: int, *, freed: bool = False, also: list[Op] | None = None
    ) -> JobEntry:
        """Let a run begin: from `pending` into the first stage, else in the stage where the job is.

        From now on only this run, by its token, may end the stage. IllegalMove if it has ended, or is held
        and the caller does not know it to be `freed`.
        """
        state = self._where(entry) if freed and entry.state == HELD else entry.state
        state = self.stages[0] if state == PENDING else state
        if state not in self.stages:
            check_move(self.stages, entry.state, self.stages[max(0, entry.standing.stage - 1)])
            raise Overtaken
        facts: dict[str, Any] = {"holds": ()} if entry.state == HELD else {}
        return await self.change(
            entry,
            state,
            also=also,
            stage=self.stages.index(state) + 1,
            run=run.hex(),
            attempt=attempt,
            code="",
            message="",
            **facts,
        )

    async def advance(
        self,
        jid: str,
        run: bytes,
        data: bytes,
        *,
        priority: int | None = None,
        space: int | None = None,
        identifiers: bytes | None = None,
        message: str = "",
        holds: tuple[Reason, ...] = (),
        seen: JobEntry | None = None,
        also: list[Op] | None = None,
    ) -> JobEntry:
        """End a stage: the job goes on to the next, or is completed. LockLost if the run is not its own.

        If there is a reason to hold it, its own or one of `holds`, it is held before the next. Whoever has
        `seen` the job since the run began saves a reading of it. `also` is done in the same step.
        """

        def next_stage(entry: JobEntry) -> dict[str, Any]:
            stage = self.stages.index(entry.state) + 1
            last = stage == len(self.stages)
            reasons = _reasons(entry, *holds)
            waits = HELD if reasons else self.stages[min(stage, len(self.stages) - 1)]
            return {
                "state": COMPLETED if last else waits,
                "stage": stage if last else stage + 1,
                "holds": () if last else reasons,
                "data": data,
                "message": payloads.cut(message),
                "attempt": 0,
                "run": "",
                "also": also,
                "priority": priority,
                "space": space,
                "identifiers": identifiers,
            }

        return await self._by_run(jid, run, next_stage, seen)

    async def fail(
        self,
        jid: str,
        run: bytes | None,
        code: str,
        message: str,
        *,
        seen: JobEntry | None = None,
        **more: Any,
    ) -> JobEntry:
        """End a job as failed where it is, with a code and why; by its run, or (None) by whoever may."""
        told: dict[str, Any] = {"state": FAILED, "code": code, "message": payloads.cut(message), "run": ""}
        told |= {"holds": ()} | more
        if run is not None:
            return await self._by_run(jid, run, lambda _entry: told, seen)
        return await self._again(jid, lambda entry: self.change(_unended(entry), **told))

    async def step_back(self, jid: str, run: bytes, **facts: Any) -> JobEntry:
        """Give a run up without an end: the job waits at its stage for another, with facts of its place."""
        return await self._by_run(jid, run, lambda entry: {"state": entry.state, "run": "", **facts})

    async def hold(self, jid: str, reason: Reason) -> JobEntry:
        """Hold a job at once, or one that runs before its next stage; AlreadyEnded if it has ended.

        A second reason is added to the first.
        """

        async def held(entry: JobEntry) -> JobEntry:
            state = entry.state if entry.standing.run else HELD
            return await self.change(_unended(entry), state, holds=_reasons(entry, reason))

        return await self._again(jid, held)

    async def unhold(self, jid: str, kind: str, name: str) -> JobEntry:
        """Take a reason away; a job that has no other goes on where it was."""

        async def freed(entry: JobEntry) -> JobEntry:
            left = tuple(each for each in entry.standing.holds if (each.kind, each.name) != (kind, name))
            state = self._where(entry) if entry.state == HELD and not left else entry.state
            return await self.change(entry, state, holds=left)

        return await self._again(jid, freed)

    async def retry(self, jid: str, **facts: Any) -> JobEntry:
        """Let a failed job go on at the stage that failed; NotFailed, BatchReporting."""

        async def retried(entry: JobEntry) -> JobEntry:
            if entry.state != FAILED:
                raise NotFailed
            fence = await self.batch_fence(entry.batch)
            changes: dict[str, Any] = {"attempt": 0, "code": "", "message": "", "retries": entry.retries + 1}
            return await self.change(entry, self._where(entry), also=fence, **(changes | facts))

        return await self._again(jid, retried)

    async def prioritise(self, jid: str, priority: int) -> JobEntry:
        """Give a job another priority; its index entry moves in the same step. AlreadyEnded."""
        return await self._again(
            jid, lambda entry: self.change(_unended(entry), entry.state, priority=priority)
        )

    async def place(self, jid: str, **facts: Any) -> JobEntry:
        """Note where a job stands in line: release, arrival, band and the like."""
        return await self._again(jid, lambda entry: self.change(entry, entry.state, **facts))

    async def rewrite(self, jid: str, order: Order) -> JobEntry:
        """Give a job that has not ended another body, as a PUT of its key does; AlreadyEnded."""

        async def rewritten(entry: JobEntry) -> JobEntry:
            data = payloads.configuration(
                self.tree.layout, entry.batch, str(order.submitter), order.profile, order.body
            )
            place = payloads.stand_body(payloads.Standing(), order.body)
            asked = ("level", "elastic", "duration", "need", "expires_at", "abandon")
            facts = {name: getattr(place, name) for name in ("key", "response_url", "extra", "body")}
            facts |= {name: getattr(order, name) for name in asked}
            also: list[Op] = [Put(self.tree.job(jid, "configuration"), data)]
            changed = await self.change(
                _unended(entry), entry.state, priority=order.priority, also=also, **facts
            )
            return replace(changed, configuration=payloads.read_object(data))

        return await self._again(jid, rewritten)

    # ---------------------------------------------------------------- deletion

    async def delete(self, jid: str, *, forget: bool = False) -> None:
        """Delete a job, whatever it does; its batch keeps its name. BatchReporting, or UnknownJob.

        A layout that keeps deleted jobs keeps it, unless it is to `forget` it.
        """
        for _ in range(20):
            entry = await self.read(jid)
            fence = await self.batch_fence(entry.batch)
            try:
                if self.tree.layout.keeps_deleted and not forget:
                    await self.change(entry, DELETED, also=fence, legal=True, run="", code="", message="")
                else:
                    await self._erase(entry, fence)
            except (Overtaken, Refused):
                await self.session.sync(self.tree.jobs)
                continue
            return
        raise Overtaken

    async def _erase(self, entry: JobEntry, fence: list[Op]) -> None:
        names = await self.session.children(self.tree.job(entry.jid)) or []
        ops: list[Op] = [*fence, Check(self.tree.job(entry.jid, "status"), entry.version)]
        ops += [Delete(self.tree.job(entry.jid, name)) for name in names]
        ops += [Delete(self.tree.job(entry.jid))]
        ops += [Delete(self.tree.entry(entry.state, entry.priority, entry.jid))]
        if entry.batch and not entry.standing.newer:
            grave = self.tree.batch(entry.batch, "states", self.tree.layout.buckets[DELETED])
            if await self.session.stat(grave) is None:
                ops.append(Create(grave))
            label = {"id": entry.standing.id, "key": entry.standing.key, "label": entry.standing.label,
                     "reported": entry.standing.reported}  # fmt: skip
            ops.append(Delete(self.tree.bucket(entry.batch, entry.state, entry.jid)))
            ops.append(Create(f"{grave}/{entry.jid}", payloads.pack(label)))

        async def landed() -> bool:
            return await self.session.stat(self.tree.job(entry.jid)) is None

        await certain(self.session, ops, landed)

    async def batch_fence(self, bid: str) -> list[Op]:
        """Give what a step carries that changes which jobs of a batch have ended: nobody reports meanwhile.

        BatchReporting if its rows are fixed just now.
        """
        if not bid:
            return []
        path = self.tree.batch(bid, "status")
        status = await self.session.get(path)
        if status is None:
            return []
        state = payloads.read_state(payloads.read_object(status.data).get("status"), BatchState)
        updating = state == BatchState.UPDATE_REPORTING and not await self.reader.unfinished(bid)
        if state == BatchState.REPORTING or updating:
            raise BatchReporting
        return [Put(path, status.data, status.version)]

    # ---------------------------------------------------------------- the one step

    async def change(
        self,
        entry: JobEntry,
        state: str,
        *,
        priority: int | None = None,
        space: int | None = None,
        identifiers: bytes | None = None,
        retries: int | None = None,
        also: list[Op] | None = None,
        legal: bool = False,
        **standing: Any,
    ) -> JobEntry:
        """Change a job as it was read, in one step; `standing` are fields of its place.

        IllegalMove if the table has no such move, Overtaken if it was changed since, LockLost if a lock is
        not as `also` says; nothing changes then.
        """
        if not legal:
            check_move(self.stages, entry.state, state)
        now, token = self.clock(), secrets.token_hex(16)
        place = msgspec.structs.replace(entry.standing, **standing, modified_at=now, write=token)
        new = replace(
            entry,
            state=state,
            version=entry.version + 1,
            last=self._last(entry, state, place.stage),
            retries=entry.retries if retries is None else retries,
            modified_at=now,
            priority=entry.priority if priority is None else priority,
            space=entry.space if space is None else space,
            identifiers=entry.identifiers if identifiers is None else identifiers,
            standing=place,
            placed=entry.placed + 1,
            present=frozenset(FACTS) | entry.present,
        )

        async def landed() -> bool:
            seen = await self.reader.job(entry.jid)
            return seen is not None and seen.standing.write == token

        try:
            await certain(self.session, [*self._ops(entry, new), *(also or [])], landed)
        except Refused as refused:
            if refused.path.endswith("/lock"):
                raise LockLost from refused
            raise Overtaken from refused
        return new

    def _ops(self, old: JobEntry, new: JobEntry) -> list[Op]:
        path, layout = self.tree.job, self.tree.layout
        status = payloads.job_status(
            layout,
            new.state,
            last=new.last,
            retries=new.retries,
            at=new.modified_at,
            message=new.standing.message,
        )
        ops: list[Op] = [Put(path(old.jid, "status"), payloads.pack(status), old.version)]
        facts = {
            "place": payloads.pack(new.standing),
            "priority": b"%d" % new.priority,
            "space_needed": b"%d" % new.space,
            "identifiers": payloads.guarded(new.identifiers or payloads.NO_IDENTIFIERS),
        }
        same = {
            "priority": new.priority == old.priority,
            "space_needed": new.space == old.space,
            "identifiers": new.identifiers == old.identifiers,
        }
        for fact, data in facts.items():
            if fact not in old.present:
                ops.append(Create(path(old.jid, fact), data))
            elif not same.get(fact):
                ops.append(Put(path(old.jid, fact), data, old.placed if fact == "place" else -1))
        was = self.tree.entry(old.state, old.priority, old.jid)
        goes = self.tree.entry(new.state, new.priority, new.jid)
        if was != goes:
            ops += [Delete(was), Create(goes)]
        if old.batch and not old.standing.newer:
            was, goes = (self.tree.bucket(old.batch, each.state, old.jid) for each in (old, new))
            if was != goes:
                ops += [Delete(was), Create(goes)]
        return ops

    def _last(self, entry: JobEntry, state: str, stage: int) -> str | None:
        """Name what the job finished last: only the end of a stage changes it."""
        if entry.state in self.stages and (state == COMPLETED or stage > entry.standing.stage):
            return last_successful(self.stages, stage, state)
        return entry.last

    def _where(self, entry: JobEntry) -> str:
        """Name the state in which a job goes on that was held, or failed."""
        return self.stages[entry.standing.stage - 1] if entry.standing.stage else PENDING

    async def _by_run(
        self,
        jid: str,
        run: bytes,
        what: Callable[[JobEntry], dict[str, Any]],
        seen: JobEntry | None = None,
    ) -> JobEntry:
        """Change a job in the name of its run; whatever else was changed meanwhile does not matter."""

        async def step(entry: JobEntry) -> JobEntry:
            if not run or entry.standing.run != run.hex() or entry.state not in self.stages:
                raise LockLost("another run has the job, or none")
            return await self.change(entry, **what(entry))

        if seen is not None and seen.standing.run == run.hex():
            with contextlib.suppress(Overtaken):
                return await step(seen)
        return await self._again(jid, step)

    async def _again(self, jid: str, step: Callable[[JobEntry], Awaitable[JobEntry]]) -> JobEntry:
        """Read a job and change it; if somebody was quicker, read it again."""
        for _ in range(20):
            entry = await self.read(jid)
            try:
                return await step(entry)
            except Overtaken:
                await self.session.sync(self.tree.jobs)
        raise Overtaken


def _reasons(entry: JobEntry, *more: Reason) -> tuple[Reason, ...]:
    """Give all reasons to hold a job; a newer one for the same thing takes the place of the older."""
    reasons = {(each.kind, each.name): each for each in (*entry.standing.holds, *more)}
    return tuple(reasons.values())


def _unended(entry: JobEntry) -> JobEntry:
    if entry.state in ENDED:
        raise AlreadyEnded
    return entry
