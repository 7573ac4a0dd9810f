"""A small language for scenarios: who submits what, who is seated next, what the line looks like."""

from typing import Any

from maitred.core.job import Band, Finish, Order, Put, Start, Submitter
from maitred.core.settings import SECOND
from maitred.store.port import Store
from tests.conftest import Clock

U1, U2, T7, U7 = (
    Submitter("user", "1"),
    Submitter("user", "2"),
    Submitter("team", "7"),
    Submitter("user", "7"),
)
NEED = "handler:grade"


class Party:
    """A queue with one worker that takes a job only when told to: `pops` frees a slot and says who starts."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store, self.clock = store, clock
        self.held: list[Start] = []

    async def submit(
        self, id: str, who: Submitter = U1, *, delay: float | None = 0, body: bytes = b"", **more: Any
    ) -> str:
        """Submit a job; answer the outcome or the code of a refusal."""
        microseconds = None if delay is None else round(delay * SECOND)
        [answer] = await self.store.put(
            [Order(id, who, more.pop("need", NEED), body, delay=microseconds, **more)]
        )
        return answer.outcome if isinstance(answer, Put) else answer

    async def now_at(self, id: str, who: Submitter = U1, **more: Any) -> str:
        """Submit to the immediate band."""
        return await self.submit(id, who, delay=None, band=Band.IMMEDIATE, **more)

    async def pop(self) -> Start | None:
        """Free one slot, and give what starts on it."""
        shift = await self.store.join(f"w{len(self.held)}", 1, [NEED, "command"])
        await self.store.leave(f"w{len(self.held)}")
        if not shift.starts:
            return None
        [start] = shift.starts
        self.held.append(start)
        return start

    async def pops(self, count: int = 99) -> list[str]:
        """Free slots one after another; give the ids in the order in which they start."""
        ids: list[str] = []
        while len(ids) < count and (start := await self.pop()):
            ids.append(start.id)
        return ids

    async def line(self) -> list[str]:
        """Give the waiting jobs in line order."""
        return [view.job.id for view in (await self.store.line(None, 500)).views]

    async def due_in(self, id: str) -> float:
        """Give the seconds after the start of the test at which the job's place is due."""
        [view] = await self.store.read([id])
        assert view
        assert view.release is not None
        return (view.release - 1_000_000_000) / SECOND

    async def state(self, id: str) -> tuple[str, str]:
        """Give a job's state and code."""
        [view] = await self.store.read([id])
        assert view
        return view.job.state(("processing",)), view.job.code

    async def finish(self, start: Start, worker: str, code: str = "") -> None:
        """Let a worker finish."""
        await self.store.finish(worker, [Finish(start.lease, code)])
