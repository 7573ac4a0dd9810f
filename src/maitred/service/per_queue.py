"""What a server does for each queue: begun when the queue is first seen, ended with the server."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

import structlog

from maitred.errors import StoreError
from maitred.store.port import Stores

LOOK_EVERY = 5.0

_log = structlog.get_logger()


async def for_each(stores: Stores, see_to: Callable[[str], Awaitable[None]]) -> None:
    """See to each queue by its name, and to new ones a little later, until cancelled."""
    while True:
        with contextlib.suppress(StoreError):
            for name in await stores.names():
                await see_to(name)
        await asyncio.sleep(LOOK_EVERY)


def begin(role: str, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
    """Begin what should go on until it is cancelled; if it ends otherwise, that is a bug and is told."""
    task = asyncio.create_task(work)

    def tell(task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()):
            _log.error(f"a {role} has ended", exc_info=error)

    task.add_done_callback(tell)
    return task


async def end(tasks: Iterable["asyncio.Task[None]"]) -> None:
    """Cancel tasks, and wait until they have tidied up."""
    ending = list(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)
