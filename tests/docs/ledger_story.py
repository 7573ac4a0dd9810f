"""The small stories of docs/ledger.md, told line by line and played on a store with a clock of their own.

space: 10                                        (the queue's budget; else it has none)
 0 s  a worker comes for estimating only         (or: for two, stages; else there is one for all)
 0 s  ada submits A, profile maps, batch X
 1 s  A ends estimating, needs 6                 (or: A ends everything)
 1 s  A fails in downloading: no such file       (or: A fails in downloading for now: …)
 2 s  A is downloading and waits, last success estimating     (or: and runs; A is held, failed, completed)
 2 s  A is retried                               (or: cancelled, deleted)
 2 s  job A is held                              (or: resumed; profile maps, submitter ada, batch X)
 3 s  waiting: A, B                              (or: nobody)
 3 s  the queue is paused                        (or: resumed)
 4 s  ada opens batch X
 4 s  batch X is sealed
 5 s  batch X is processing: 1 processing, 2 completed
 6 s  batch X is reported: A completed, B failed
 7 s  an update of batch X is asked for
"""

import re
from typing import Any

from maitred.core.batch import BatchOrder
from maitred.core.job import Phase, Submitter
from maitred.core.settings import SECOND
from maitred.core.stages import INGEST
from maitred.store.port import Stores
from tests.conformance.ledger import Ledger
from tests.conftest import Clock

SLOTS = 4
STATES = {*INGEST, "pending", "held", "failed", "completed"}


class LedgerStory:
    """One queue with the ingest pipeline, and what becomes of its jobs."""

    def __init__(self, stores: Stores, queue: str, clock: Clock) -> None:
        self._clock, self._start = clock, clock.now
        self._ledger = Ledger(stores.queue(queue), clock)
        self._batches: dict[str, str] = {}

    async def play(self, text: str) -> None:
        """Play all lines; an assertion fails at the first that is not true."""
        lines = text.splitlines()
        budget = re.fullmatch(r"space: (\d+)", lines[0])
        manned = "a worker comes" not in text
        await self._ledger.open(slots=SLOTS * manned, space=int(budget[1]) if budget else 0)
        for line in lines[1:] if budget else lines:
            told = re.fullmatch(r"\s*(\d+) s\s+(.*)", line)
            assert told, f"this line cannot be played: {line}"
            self._clock.now = self._start + int(told[1]) * SECOND
            await self._ledger.tick()
            await self._tell(told[2])
        assert await self._ledger.store.check() == []

    async def _tell(self, what: str) -> None:
        for pattern, play in (
            (r"a worker comes for (.*?)(?: only)?", self._join),
            (r"(\w+) submits (\w+)(.*)", self._submit),
            (r"(\w+) ends (\w+)(?:, needs (\d+))?", self._end),
            (r"(\w+) fails in (\w+)( for now)?: (.*)", self._fail),
            (r"(job|profile|submitter|batch) (\w+) is (held|resumed)", self._hold),
            (r"the queue is (paused|resumed)", self._pause),
            (r"waiting: (.*)", self._waiting),
            (r"(\w+) opens batch (\w+)", self._open),
            (r"batch (\w+) is reported: (.*)", self._report),
            (r"batch (\w+) is sealed", self._seal),
            (r"batch (\w+) is ([\w-]+)(?:: (.*))?", self._batch_is),
            (r"an update of batch (\w+) is asked for", self._update),
            (r"(\w+) is (retried|cancelled|deleted)", self._move),
            (r"(\w+) is (\w+)(?: and (waits|runs))?(?:, last success (\w+))?", self._is),
        ):
            if found := re.fullmatch(pattern, what):
                await play(*found.groups())
                return
        raise AssertionError(f"this cannot be played: {what}")

    async def _join(self, stages: str) -> None:
        await self._ledger.join(f"w{len(self._ledger.workers)}", SLOTS, stages.split(", "))

    async def _submit(self, who: str, name: str, how: str) -> None:
        asked: dict[str, Any] = dict(re.findall(r", (profile|batch) (\w+)", how))
        if "batch" in asked:
            asked["batch"] = self._batches[asked["batch"]]
        assert await self._ledger.put(name, Submitter("user", who), **asked) == "created"

    async def _end(self, name: str, stage: str, space: str | None) -> None:
        if stage == "everything":
            await self._ledger.complete(name)
            return
        assert await self._ledger.state(name) == stage
        await self._ledger.done(name, space=None if space is None else int(space))

    async def _fail(self, name: str, stage: str, for_now: str | None, message: str) -> None:
        assert await self._ledger.state(name) == stage
        await self._ledger.fail(name, message, transient=bool(for_now))

    async def _hold(self, kind: str, name: str, how: str) -> None:
        named = {"submitter": f"user.{name}", "batch": self._batches.get(name, "")}.get(kind, name)
        await (self._ledger.hold if how == "held" else self._ledger.unhold)(kind, named)

    async def _pause(self, how: str) -> None:
        if how == "paused":
            await self._ledger.store.pause("ann", "")
        else:
            await self._ledger.store.resume()
        await self._ledger.look()

    async def _waiting(self, names: str) -> None:
        assert (", ".join(await self._ledger.line()) or "nobody") == names

    async def _open(self, who: str, name: str) -> None:
        order = BatchOrder(name, Submitter("user", who), "", b"", expanding=False, sealed=False)
        self._batches[name] = (await self._ledger.store.create_batch(order)).id

    async def _seal(self, name: str) -> None:
        await self._ledger.store.seal_batch(self._batches[name])

    async def _batch_is(self, name: str, state: str, counts: str | None) -> None:
        id = self._batches[name]
        assert (await self._ledger.batch(id)).state == state
        found = await self._ledger.counts(id)
        assert counts is None or ", ".join(f"{count} {bucket}" for bucket, count in found.items()) == counts

    async def _report(self, name: str, told: str) -> None:
        _, rows = await self._ledger.report(self._batches[name])
        assert ", ".join(f"{row.id} {row.state}" for row in rows) == told

    async def _update(self, name: str) -> None:
        await self._ledger.store.update_batch(self._batches[name])

    async def _move(self, name: str, how: str) -> None:
        if how == "retried":
            await self._ledger.retry(name)
        elif how == "cancelled":
            await self._ledger.store.cancel(name, "")
        else:
            await self._ledger.store.remove(name)
        await self._ledger.look()

    async def _is(self, name: str, state: str, how: str | None, last: str | None) -> None:
        assert state in STATES, f"{state} is no state"
        assert await self._ledger.state(name) == state
        phase = (await self._ledger.job(name)).phase
        assert {Phase.WAITING: "waits", Phase.RUNNING: "runs"}.get(phase) == how
        assert last is None or await self._ledger.last_success(name) == last
