"""Ticks when something is due in the store and nobody else calls it."""

import asyncio

from maitred.core.job import Moment
from maitred.store.port import Store
from maitred.worker.reach import Reach
from maitred.worker.store_clock import StoreClock

SAFETY_NET = 1.0
NEVER = float("inf")


class Timekeeper:
    """One alarm for the earliest moment that any answer named, and once a second as a safety net."""

    def __init__(self, store: Store, reach: Reach, clock: StoreClock) -> None:
        self._store, self._reach, self._clock = store, reach, clock
        self._alarm = asyncio.Event()
        self._alarm_at = NEVER
        self._timer: asyncio.TimerHandle | None = None

    def heed(self, moment: Moment) -> None:
        """Take in the time of an answer, and bring the alarm forward; one that comes early does no harm."""
        self._clock.hear(moment.now)
        loop = asyncio.get_running_loop()
        at = loop.time() + moment.wait(SAFETY_NET)
        if at < self._alarm_at:
            self._alarm_at = at
            self.close()
            self._timer = loop.call_at(at, self._alarm.set)

    def wake(self) -> None:
        """Tick now."""
        self._alarm.set()

    async def run(self) -> None:
        """Tick until cancelled."""
        while True:
            await self._alarm.wait()
            self._alarm.clear()
            moment = await self._reach.patiently(self._store.tick)
            self._alarm_at = NEVER
            self.heed(moment)

    def close(self) -> None:
        """Set the alarm off."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
