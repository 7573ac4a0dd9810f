"""The sync face of a queue: the same coroutines, run on a loop in a thread of their own.

It is not a second implementation: each method here is made from the one of `Queue`, and has its arguments,
its answer and its errors. The thread is started at first use, serves all queues of the process, and does not
keep the process alive. A process that was forked starts its own.
"""

import asyncio
import os
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


os.register_at_fork(after_in_child=_background.cache_clear)


def wait_for(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on that loop, and block until its answer is there."""
    return asyncio.run_coroutine_threadsafe(coroutine, _background()).result()


def _blocking(
    method: Callable[Concatenate[Queue, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["SyncQueue", P], T]:
    @wraps(method)
    def call(self: "SyncQueue", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return wait_for(method(self.on(_background()), *args, **kwargs))

    return call


class SyncQueue:
    """A queue whose methods block; get one as `queue.sync`."""

    def __init__(self, make: Callable[[], Queue]) -> None:
        self._make = make
        self._on: tuple[asyncio.AbstractEventLoop, Queue] | None = None

    def on(self, loop: asyncio.AbstractEventLoop) -> Queue:
        """Give the queue whose connections belong to this loop, made anew in a child that was forked."""
        if self._on is None or self._on[0] is not loop:
            self._on = (loop, self._make())
        return self._on[1]

    def forget(self) -> None:
        """Make the queue anew at the next call: it asks another store."""
        self._on = None

    put = _blocking(Queue.put)
    put_many = _blocking(Queue.put_many)
    job = _blocking(Queue.job)
    output = _blocking(Queue.output)
    artifact = _blocking(Queue.artifact)
    deliveries = _blocking(Queue.deliveries)
    line = _blocking(Queue.line)
    release = _blocking(Queue.release)
    delay = _blocking(Queue.delay)
    shorten = _blocking(Queue.shorten)
    remove = _blocking(Queue.remove)
    cancel = _blocking(Queue.cancel)
    prioritise = _blocking(Queue.prioritise)
    retry = _blocking(Queue.retry)
    hold = _blocking(Queue.hold)
    resume = _blocking(Queue.resume)
    hold_submitter = _blocking(Queue.hold_submitter)
    resume_submitter = _blocking(Queue.resume_submitter)
    hold_profile = _blocking(Queue.hold_profile)
    resume_profile = _blocking(Queue.resume_profile)
    submit_batch = _blocking(Queue.submit_batch)
    add_jobs = _blocking(Queue.add_jobs)
    seal_batch = _blocking(Queue.seal_batch)
    batch = _blocking(Queue.batch)
    batches = _blocking(Queue.batches)
    report = _blocking(Queue.report)
    hold_batch = _blocking(Queue.hold_batch)
    resume_batch = _blocking(Queue.resume_batch)
    retry_batch = _blocking(Queue.retry_batch)
    update_report = _blocking(Queue.update_report)
    remove_batch = _blocking(Queue.remove_batch)
    close = _blocking(Queue.close)
