"""The sync face of a queue: the same coroutines, run on a loop in a thread of their own.

It is not a second implementation: each method here is made from the one of `Queue`, and has its arguments,
its answer and its errors. The thread is started at first use, serves all queues of the process, and does not
keep the process alive.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from functools import cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from maitred.service.queue import Queue

P = ParamSpec("P")
T = TypeVar("T")


@cache
def _background() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="maitred-sync", daemon=True).start()
    return loop


def _blocking(
    method: Callable[Concatenate[Queue, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["SyncQueue", P], T]:
    @wraps(method)
    def call(self: "SyncQueue", /, *args: P.args, **kwargs: P.kwargs) -> T:
        coroutine = method(self.queue, *args, **kwargs)
        return asyncio.run_coroutine_threadsafe(coroutine, _background()).result()

    return call


class SyncQueue:
    """A queue whose methods block; get one as `queue.sync`."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue

    put = _blocking(Queue.put)
    put_many = _blocking(Queue.put_many)
    job = _blocking(Queue.job)
    line = _blocking(Queue.line)
    release = _blocking(Queue.release)
    delay = _blocking(Queue.delay)
    remove = _blocking(Queue.remove)
    cancel = _blocking(Queue.cancel)
    close = _blocking(Queue.close)
