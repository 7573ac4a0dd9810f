"""A loop in a thread of its own, for programs that have none: what blocks there runs here.

The thread is started at first use, serves the whole process, and does not keep it alive. A process that was
forked starts its own.
"""

import asyncio
import os
import threading
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


@cache
def background() -> asyncio.AbstractEventLoop:
    """Give the loop; it runs."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="maitred-sync", daemon=True).start()
    return loop


os.register_at_fork(after_in_child=background.cache_clear)


def wait_for(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine there and wait for what it gives; whoever is interrupted interrupts it."""
    future = asyncio.run_coroutine_threadsafe(coroutine, background())
    try:
        return future.result()
    finally:
        future.cancel()
