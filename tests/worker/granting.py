"""A store that says to its workers what a test wants it to say."""

from collections.abc import Callable, Sequence
from typing import Any

from maitred.core.job import Finish, Lease, Lower, Message, Shift, Start, Stop
from maitred.core.settings import SECOND
from maitred.store.memory import MemoryStore


def micros(seconds: float) -> int:
    return round(seconds * SECOND)


class Granting:
    """The memory store, but each job may be granted a time of its own, and orders come from the test.

    `heard` is called with what a worker says has ended, before the store hears of it.
    """

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.granted: dict[str, float] = {}
        self.starts: dict[str, Start] = {}
        self.heard: Callable[[Finish], object] = lambda _: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def join(self, worker: str, slots: int, serves: Sequence[str], about: bytes = b"") -> Shift:
        return self._with_times(await self._store.join(worker, slots, serves, about))

    async def finish(self, worker: str, results: Sequence[Finish]) -> Shift:
        for finish in results:
            self.heard(finish)
        return self._with_times(await self._store.finish(worker, results))

    async def renew(self, worker: str, held: Sequence[Lease]) -> Shift:
        return self._with_times(await self._store.renew(worker, held))

    async def park(self, worker: str, timeout: float) -> list[Message]:
        messages = await self._store.park(worker, timeout)
        return [self._with_time(message) if isinstance(message, Start) else message for message in messages]

    def stop(self, id: str, code: str, limit: float = 0) -> None:
        """Tell the worker that runs a job to stop it."""
        self._tell(Stop(self.starts[id].lease, code, micros(limit)))

    def lower(self, id: str, seconds: float, code: str) -> None:
        """Tell the worker that runs a job to leave it only so long from its start on."""
        self._tell(Lower(self.starts[id].lease, micros(seconds), code))

    def lower_from_now(self, id: str, seconds: float, code: str) -> int:
        """The same, from now on; gives the whole duration that is left to it."""
        duration = self._store._time() + micros(seconds) - self.starts[id].start
        self._tell(Lower(self.starts[id].lease, duration, code))
        return duration

    def _tell(self, message: Message) -> None:
        for name in self._store._house.floor.workers:
            self._store._house.inboxes.setdefault(name, []).append(message)
        self._store._ring()

    def _with_times(self, shift: Shift) -> Shift:
        return shift._replace(starts=[self._with_time(start) for start in shift.starts])

    def _with_time(self, start: Start) -> Start:
        given = start._replace(duration=micros(self.granted.get(start.id, 0)))
        self.starts[start.id] = given
        return given
