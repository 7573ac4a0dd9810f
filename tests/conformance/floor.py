"""A small language for the Floor: a worker whose jobs run until a test ends them."""

from typing import Any

from maitred.core.classes import DurationClass, Limit
from maitred.core.job import Finish, Lease, Lower, Order, Start, Stop, Submitter
from maitred.core.settings import MINUTE, SECOND, Settings
from maitred.store.port import Store
from tests.conftest import Clock

NEED = "handler:render"
FAST, MEDIUM, SLOW = 1, 2, 3
CAPS = (3, 10, 30)
POLICIES = ["borrow", "squeeze"]


def classes(*limits: int, caps: tuple[int, ...] = CAPS) -> tuple[DurationClass, ...]:
    """The classes with these limits; the first one's is the number of slots."""
    names = ("fast", "medium", "slow", "d", "e", "f", "g", "h")
    return tuple(
        DurationClass(name, cap * SECOND, Limit(limit) if at else None)
        for at, (name, cap, limit) in enumerate(zip(names, caps, limits, strict=False))
    )


class Floor:
    """A queue with one worker of some slots: jobs run until a test ends them."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.store, self.clock = store, clock
        self.started: dict[str, Start] = {}
        self.order: list[str] = []
        self.told: list[Stop | Lower] = []
        self.names: dict[Lease, str] = {}
        self.people = 0

    async def open(
        self, *limits: int, policy: Any = "borrow", caps: tuple[int, ...] = CAPS, **more: Any
    ) -> None:
        """Open the queue with one worker that has as many slots as the first limit says."""
        settings = Settings(lease=60 * MINUTE, elastic=policy, classes=classes(*limits, caps=caps), **more)
        await self.store.configure(settings)
        self._note(await self.store.join("w", limits[0], [NEED]))

    def _note(self, shift: Any) -> None:
        for start in shift.starts:
            self._begin(start)

    def _begin(self, start: Start) -> None:
        self.started[start.id] = start
        self.names[start.lease] = start.id
        self.order.append(start.id)

    async def look(self) -> None:
        """Let the clock do its work and read what the worker was told."""
        await self.store.tick()
        await self._read()

    async def _read(self) -> None:
        for message in await self.store.park("w", 0.01):
            if isinstance(message, Start):
                self._begin(message)
            elif isinstance(message, Stop | Lower):
                self.told.append(message)

    async def put(self, id: str, level: int | None = None, *, duration: float = 0, **more: Any) -> Any:
        """Submit a job of its own submitter, elastic unless a class is given."""
        self.people += 1
        who = more.pop("who", Submitter("user", str(self.people)))
        order = Order(
            id, who, NEED, b"", level=level or 1, elastic=level is None, duration=int(duration * SECOND),
            delay=more.pop("delay", 0), **more,
        )  # fmt: skip
        [answer] = await self.store.put([order])
        await self._read()
        return answer

    async def admit(self, id: str, who: str = "s") -> str:
        """Ask for an interactive job; answer why it was denied, if it was."""
        admission = await self.store.admit(Order(id, Submitter("user", who), NEED, b""))
        await self._read()
        return admission.denied

    async def finish(self, id: str, code: str = "") -> None:
        """End a job, or confirm that it was stopped."""
        await self.end(self.started.pop(id), code)

    async def end(self, start: Start, code: str = "") -> None:
        """End a run, or confirm that it was stopped."""
        self._note(await self.store.finish("w", [Finish(start.lease, code)]))
        await self._read()

    async def after(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.now += round(seconds * SECOND)
        await self.look()

    async def grants(self) -> dict[str, tuple[int, float]]:
        """Give the class that each running job holds and the seconds granted to it."""
        return {v.job.id: (v.holding or 0, (v.granted or 0) / SECOND) for v in await self.store.running()}

    async def line(self) -> list[str]:
        """Give the waiting jobs in line order."""
        return [view.job.id for view in (await self.store.line(None, 500)).views]

    def stops(self) -> list[tuple[str, str, float]]:
        """Give who was told to stop, why, and at which limit."""
        return [(self.names[m.lease], m.code, m.limit / SECOND) for m in self.told if isinstance(m, Stop)]

    def lowered(self) -> dict[str, float]:
        """Give whose limit was lowered, and to what."""
        return {self.names[m.lease]: m.duration / SECOND for m in self.told if isinstance(m, Lower)}
