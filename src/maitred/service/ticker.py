"""The ticker: it calls each queue's `tick` at the moment that the store named, and once a second anyway.

There is no scheduler process: every verb does what the clock asks for, and this is only for the moments at
which nobody calls. Any number of tickers may run at once. A store that is lost is asked again each second.

A queue in which nothing happens is left alone up to the moment at which its clock asks for something: what
happens there is told, and then it is ticked at once.
"""

import asyncio
import contextlib
import math
import random
import time
from collections.abc import Sequence
from functools import partial

import structlog

from maitred.errors import MaitredError, StoreError, StoreUnavailable
from maitred.service.bell import Bell
from maitred.service.foresights import Foresights
from maitred.service.staff import Staff
from maitred.store.port import Stores

LONGEST = 1.0
SHORTEST = 0.001
# How long an idle queue is left alone, at most.
IDLE = 60.0
AT_ONCE = 64

_log = structlog.get_logger()


def _end(idle: float) -> float:
    """Give when an idle queue is ticked again, by the clock of this process.

    Those that have nothing to wait for do not come back all together, nor each for itself.
    """
    if idle < IDLE:
        return time.monotonic() + idle
    return float(math.ceil(time.monotonic() + random.uniform(IDLE / 2, IDLE)))  # noqa: S311 - no secret


class Ticker:
    """One loop for all queues of one store; `run` it in a task, and cancel that to stop it.

    It wakes the `staff` of a queue where there may be work for them. Without `foresights` it does not hear
    what happens, and leaves no queue alone.
    """

    def __init__(
        self, stores: Stores, foresights: Foresights | None = None, staff: Sequence[Staff] = ()
    ) -> None:
        self._stores = stores
        self._foresights = foresights
        self._staff = staff
        self._lost = False
        self._bad: dict[str, str] = {}
        self._idle_until: dict[str, float] = {}
        self._listening: set[str] = set()
        self._heard: set[str] = set()
        self._stirred: list[str] = []
        self._woken = asyncio.Event()

    async def run(self) -> None:
        """Tick until cancelled."""
        while True:
            end = time.monotonic() + await self.tick()
            while stirred := await self._wait_for_stirred(end):
                # A store that is lost is found so, and said to be, in the next round.
                with contextlib.suppress(StoreError):
                    end = min([end, *(time.monotonic() + wait for wait in await self._tick_all(stirred))])

    async def _wait_for_stirred(self, end: float) -> list[str]:
        """Wait for idle queues in which something happened; give none at the end of the round."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, end - time.monotonic())):
                await self._woken.wait()
        self._woken.clear()
        stirred, self._stirred = self._stirred, []
        return stirred

    async def tick(self) -> float:
        """Tick every queue that is not idle; give the seconds until the next time.

        Never raises for a store's sake.
        """
        try:
            now, names = time.monotonic(), await self._stores.names()
            waits = await self._tick_all([name for name in names if self._idle_until.get(name, 0.0) <= now])
        except StoreError as error:
            if not self._lost:
                _log.warning("the store does not answer", error=str(error))
            self._lost = True
            return LONGEST
        if self._lost:
            _log.info("the store answers again")
        self._lost = False
        ends = [max(SHORTEST, self._idle_until.get(name, now + LONGEST) - now) for name in names]
        return min([*waits, *ends, LONGEST])

    def wake(self, queue: str) -> None:
        """Hear that something happened in a queue; one that was idle is ticked at once, others each round."""
        self._heard.add(queue)
        if self._idle_until.pop(queue, None):
            self._stirred.append(queue)
            self._woken.set()

    async def _tick_all(self, queues: Sequence[str]) -> list[float]:
        """Tick queues, many at once, since their calls travel together; a failure is raised after all."""
        waits: list[float | BaseException] = []
        for first in range(0, len(queues), AT_ONCE):
            ticks = map(self._tick, queues[first : first + AT_ONCE])
            waits += await asyncio.gather(*ticks, return_exceptions=True)
        for failure in waits:
            if isinstance(failure, BaseException):
                raise failure
        return [wait for wait in waits if not isinstance(wait, BaseException)]

    async def _tick(self, queue: str) -> float:
        self._heard.discard(queue)
        self._idle_until.pop(queue, None)
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
        idle = moment._replace(next_at=moment.idle_until).wait(IDLE)
        if not idle:
            for each in self._staff:
                each.wake(queue)
        if idle > LONGEST and self._hears(queue) and queue not in self._heard:
            self._idle_until[queue] = _end(idle)
        return max(SHORTEST, moment.wait(LONGEST))

    def _hears(self, queue: str) -> bool:
        """Tell whether all that happens in a queue is heard, from before its last tick on."""
        foresight = self._foresights.of(queue) if self._foresights else None
        if foresight is not None and queue not in self._listening:
            self._listening.add(queue)
            foresight.listeners.append(Bell(partial(self.wake, queue)))
            return False
        return foresight is not None and foresight.picture is not None
