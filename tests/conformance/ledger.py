"""A small language for the Ledger: workers that end stages when told, an operator, and a clerk."""

from collections.abc import Sequence
from typing import Any

from maitred.core.batch import Batch, BatchOrder, BatchState, RowView
from maitred.core.job import Finish, Job, Lease, Order, Put, Shift, Start, Submitter, View
from maitred.core.settings import MINUTE, SECOND, Settings
from maitred.core.stages import INGEST, last_successful
from maitred.store.port import Store
from tests.conformance.party import U1
from tests.conftest import Clock

TOKEN = b"t" * 16
OTHER_TOKEN = b"u" * 16


def needs(*stages: str) -> list[str]:
    """Name what a worker serves that has these stages, or all."""
    return [f"stage:{stage}" for stage in stages or INGEST]


class Ledger:
    """A queue with the ingest pipeline: jobs stay in a stage until a test ends it."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store, self.clock = store, clock
        self.stages: tuple[str, ...] = INGEST
        self.runs: dict[str, tuple[str, Start]] = {}
        self.order: list[str] = []
        self.workers: list[str] = []

    async def open(self, *, slots: int = 4, **settings: Any) -> None:
        """Open the queue; with slots, one worker joins that serves all stages."""
        kept = Settings(**{"stages": INGEST, "lease": 60 * MINUTE, **settings})
        self.stages = kept.stages
        await self.store.configure(kept)
        if slots:
            await self.join("w", slots)

    async def join(self, name: str, slots: int = 1, stages: Sequence[str] | None = None) -> None:
        """Let a worker in that serves these stages, or all."""
        self.workers.append(name)
        served = needs(*self.stages) if stages is None else needs(*stages)
        self._begin(name, await self.store.join(name, slots, served))
        await self.look()

    def _begin(self, worker: str, shift: Shift) -> None:
        for start in shift.starts:
            self._take(worker, start)

    def _take(self, worker: str, start: Start) -> None:
        self.runs[start.id] = worker, start
        self.order.append(start.id)

    async def look(self) -> None:
        """Read what the workers were told."""
        for worker in self.workers:
            for message in await self.store.park(worker, 0.01):
                if isinstance(message, Start):
                    self._take(worker, message)

    async def tick(self, seconds: float = 0) -> None:
        """Let time pass, and the clock do its work."""
        self.clock.now += round(seconds * SECOND)
        await self.store.tick()
        await self.look()

    async def put(self, id: str, who: Submitter = U1, **more: Any) -> str:
        """Submit a job; answer the outcome or the code of a refusal."""
        need = f"stage:{self.stages[0]}" if self.stages != ("processing",) else "handler:a"
        [answer] = await self.store.put([Order(id, who, need, more.pop("body", b""), **more)])
        await self.look()
        return answer.outcome if isinstance(answer, Put) else answer

    def lease(self, id: str) -> Lease:
        """Give the lease of a job that runs."""
        return self.runs[id][1].lease

    async def done(self, id: str, times: int = 1, **said: Any) -> None:
        """End stages of a running job well."""
        for _ in range(times):
            await self.end(id, **said)

    async def fail(self, id: str, message: str = "no", code: str = "error", **said: Any) -> None:
        """Let the stage of a running job fail."""
        await self.end(id, code=code, message=message, **said)

    async def end(self, id: str, **said: Any) -> Shift:
        """Say how a stage ended."""
        worker, start = self.runs.pop(id)
        shift = await self.store.finish(worker, [Finish(start.lease, **said)])
        self._begin(worker, shift)
        await self.look()
        return shift

    async def through(self, id: str, until: str) -> None:
        """Carry a running job on until it is in this stage."""
        while await self.state(id) != until:
            await self.done(id)

    async def complete(self, id: str) -> None:
        """Carry a running job through all its stages."""
        while id in self.runs:
            await self.done(id)

    async def view(self, id: str) -> View:
        """Show a job."""
        [view] = await self.store.read([id])
        assert view, f"there is no job {id}"
        return view

    async def job(self, id: str) -> Job:
        """Give the newest version of a job."""
        return (await self.view(id)).job

    async def state(self, id: str) -> str:
        """Name a job's state."""
        return (await self.job(id)).state(self.stages)

    async def last_success(self, id: str) -> str | None:
        """Name the stage that a job finished last."""
        job = await self.job(id)
        return last_successful(self.stages, job.stage, job.state(self.stages))

    async def line(self) -> list[str]:
        """Give the waiting jobs in line order."""
        return [view.job.id for view in (await self.store.line(None, 1_000)).views]

    async def held(self) -> list[str]:
        """Give the held jobs."""
        return [view.job.id for view in (await self.store.held(0, 1_000)).views]

    async def hold(self, kind: Any, name: str, reason: str = "") -> None:
        """Hold something, as an operator."""
        await self.store.hold(kind, name, "ann", reason)
        await self.look()

    async def unhold(self, kind: Any, name: str) -> None:
        """Take a hold away."""
        await self.store.unhold(kind, name)
        await self.look()

    async def retry(self, id: str) -> None:
        """Retry a job, as an operator."""
        await self.store.retry(id)
        await self.look()

    async def batch_of(self, external: str = "", *jobs: str, sealed: bool = False, **more: Any) -> str:
        """Make a batch with these jobs; give its id."""
        order = BatchOrder(external, U1, "", b"sent", expanding=more.pop("expanding", False), sealed=False)
        id = (await self.store.create_batch(order)).id
        for job in jobs:
            assert await self.put(job, batch=id, label=job.encode(), **more) == "created"
        if sealed:
            await self.store.seal_batch(id)
        return id

    async def batch(self, id: str) -> Batch:
        """Show a batch."""
        batch = await self.store.batch(id)
        assert batch, f"there is no batch {id}"
        return batch

    async def counts(self, id: str) -> dict[str, int]:
        """Count the jobs of a batch; what is 0 is left out."""
        return {bucket: count for bucket, count in (await self.batch(id)).counts.items() if count}

    async def rows(self, id: str) -> list[RowView]:
        """List the jobs of a batch."""
        found, after = [], 0
        while True:
            page = await self.store.batch_rows(id, after, 100)
            found += page.rows
            if page.next is None:
                return found
            after = page.next

    async def report(self, id: str, token: bytes = TOKEN) -> tuple[BatchState, list[RowView]]:
        """Do what a clerk does with a batch that is to be reported; give its state and what is new."""
        errand = await self.store.lock_batch("clerk", token)
        assert errand, "nothing is to be reported"
        assert (errand.batch.id, errand.work) == (id, "report")
        new = [row for row in await self.rows(id) if row.state != row.reported]
        await self.store.mark_rows(id, token, [(row.id, row.state) for row in new])
        state = await self.store.report_batch(id, token, b"report", send=bool(new))
        if new:
            await self.store.sent_batch(id, token, None)
        await self.store.unlock_batch(id, token)
        return state, new
