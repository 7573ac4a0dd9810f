"""Keeps the worker's lease, which is the right to all that it runs: what is not renewed in time is lost."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from maitred.core.job import Shift
from maitred.errors import StoreError
from maitred.worker.reach import RETRY_FIRST, RETRY_LONGEST, Reach, jittered


class LeaseKeeper:
    """Renews three times per lease, or at once in doubt.

    `renew` calls the store, `heed` takes in its answer and tells whether to go on. `lose_all` is called when
    the store was out of reach for so long that others may have the work by now.
    """

    def __init__(
        self,
        length: float,
        reach: Reach,
        renew: Callable[[], Awaitable[Shift]],
        heed: Callable[[Shift], Awaitable[bool]],
        lose_all: Callable[[str], None],
    ) -> None:
        self._length = self._last_known = length
        self._reach = reach
        self._renew, self._heed, self._lose_all = renew, heed, lose_all
        self._since = float("-inf")

    @property
    def over(self) -> bool:
        """Whether the lease may be over, as after a long sleep of the whole process."""
        return time.monotonic() > self._since + self._length

    def lasts(self, length: float) -> None:
        """Take in what the settings say after a lease was given: it is of this length or of the last known.

        The shorter one counts. So no lease is lost because it became shorter, and a longer one is believed
        with the next renewal.
        """
        self._length, self._last_known = min(self._last_known, length), length

    def begins(self, at: float) -> None:
        """Note that the lease counts from a call that was made at this local time."""
        self._since = at

    async def run(self) -> None:
        """Renew until cancelled, or until the worker is unknown to the store and does not join again."""
        pause = RETRY_FIRST
        while True:
            await self._until_due()
            begun = time.monotonic()
            try:
                async with asyncio.timeout(self._length / 3):
                    shift = await self._renew()
            except (StoreError, TimeoutError) as error:
                self._reach.note_lost(error, begun)
                if self.over:
                    self._lose_all("the store was out of reach for longer than the lease")
                await asyncio.sleep(jittered(pause))
                pause = min(pause * 2, RETRY_LONGEST, self._length / 6)
                continue
            pause = RETRY_FIRST
            self._reach.note_found()
            if shift.known:
                self.begins(begun)
            if not await self._heed(shift):
                return

    async def _until_due(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, self._since + self._length / 3 - time.monotonic())):
                await self._reach.doubtful.wait()
        self._reach.doubtful.clear()
