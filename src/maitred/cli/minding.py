"""Minding the embedded server: one that ends by itself, killed by the system or by mistake, is started again.

It comes back on the same socket with all that it had answered, so the server and the workers, who ask again
until the store answers, go on as if it had been slow. One that ends again and again is given growing pauses.
"""

import asyncio
import contextlib
import time
from collections.abc import Coroutine

import structlog

from maitred.errors import StoreError
from maitred.store.valkey.embedded import Embedded

LOOK_EVERY = 0.1
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
STEADY = 60.0

_log = structlog.get_logger()


async def kept_running(embedded: Embedded, house: Coroutine[None, None, None]) -> None:
    """Run a house on an embedded server that is started again whenever it ends by itself."""
    minding = asyncio.create_task(_mind(embedded))
    try:
        await house
    finally:
        # A start that is under way would keep a house that wants to close waiting.
        embedded.hurry()
        minding.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await minding


async def _mind(embedded: Embedded) -> None:
    pause = FIRST_PAUSE
    while True:
        since = time.monotonic()
        while embedded.running:  # noqa: ASYNC110 - it is another process that ends
            await asyncio.sleep(LOOK_EVERY)
        if time.monotonic() - since > STEADY:
            pause = FIRST_PAUSE
        _log.error("the embedded server has ended and is started again", data=str(embedded.data))
        await asyncio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)
        try:
            await asyncio.to_thread(embedded.start)
        except StoreError as error:
            _log.error("the embedded server could not be started again", error=str(error))
        else:
            _log.info("the embedded server answers again", server_pid=embedded.pid)
