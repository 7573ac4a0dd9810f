"""The ticker: it calls each queue's `tick` at the moment that the store named, and once a second anyway.

There is no scheduler process: every verb does what the clock asks for, and this is only for the moments at
which nobody calls. Any number of tickers may run at once. A store that is lost is asked again each second.
"""

import asyncio

import structlog

from maitred.errors import MaitredError, StoreError, StoreUnavailable
from maitred.store.port import Stores

LONGEST = 1.0
SHORTEST = 0.001

_log = structlog.get_logger()


class Ticker:
    """One loop for all queues of one store; `run` it in a task, and cancel that to stop it."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._lost = False
        self._bad: dict[str, str] = {}

    async def run(self) -> None:
        """Tick until cancelled."""
        while True:
            wait = await self.tick()
            await asyncio.sleep(wait)

    async def tick(self) -> float:
        """Tick every queue once; give the seconds until the next time. Never raises for a store's sake."""
        try:
            waits = [await self._tick(name) for name in await self._stores.names()]
        except StoreError as error:
            if not self._lost:
                _log.warning("the store does not answer", error=str(error))
            self._lost = True
            return LONGEST
        if self._lost:
            _log.info("the store answers again")
        self._lost = False
        return min(waits, default=LONGEST)

    async def _tick(self, queue: str) -> float:
        try:
            moment = await self._stores.queue(queue).tick()
        except StoreUnavailable:
            raise
        except MaitredError as error:
            # A queue that was removed between the two calls, or that another version wrote, is no reason to
            # stop ticking the others. It is told once, not every second.
            if self._bad.get(queue) != str(error):
                _log.warning("a queue could not be ticked", queue=queue, error=str(error))
            self._bad[queue] = str(error)
            return LONGEST
        self._bad.pop(queue, None)
        return max(SHORTEST, moment.wait(LONGEST))
