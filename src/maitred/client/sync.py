"""The sync face of the client: the same coroutines, run on a loop in a thread of their own.

It is not a second implementation: each method here is made from the one of `Client`, and has its arguments,
its answer and its errors; what is an async iterator there is a plain one here.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from functools import partial, wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from maitred.background import background, wait_for
from maitred.client.client import Client
from maitred.client.retrying import RETRIES

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(
    method: Callable[Concatenate[Client, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["SyncClient", P], T]:
    @wraps(method)
    def call(self: "SyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return wait_for(method(self.on(background()), *args, **kwargs))

    return call


def _iterating(
    method: Callable[Concatenate[Client, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate["SyncClient", P], Generator[T, None, None]]:
    @wraps(method)
    def call(self: "SyncClient", /, *args: P.args, **kwargs: P.kwargs) -> Generator[T, None, None]:
        items = method(self.on(background()), *args, **kwargs)
        try:
            while more := wait_for(_next(items)):
                yield from more
        finally:
            wait_for(items.aclose())

    return call


async def _next(items: AsyncGenerator[T, None]) -> list[T]:
    """Give the next item; nothing at the end."""
    async for item in items:
        return [item]
    return []


class SyncClient:
    """Calls one server, as `Client` does, and waits for each answer; an iterator is left by closing it."""

    def __init__(self, address: str, *, key: str | None = None, retries: Sequence[float] = RETRIES) -> None:
        """Name the server, and the API key to call it with, if it needs one; `retries` as in `Client`."""
        self.address = address
        self._make = partial(Client, address, key=key, retries=retries)
        self._on: tuple[asyncio.AbstractEventLoop, Client] | None = None

    def on(self, loop: asyncio.AbstractEventLoop) -> Client:
        """Give the client whose connections belong to this loop, made anew in a child that was forked."""
        if self._on is None or self._on[0] is not loop:
            self._on = (loop, self._make())
        return self._on[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    put = _blocking(Client.put)
    put_many = _blocking(Client.put_many)
    submit = _blocking(Client.submit)
    submit_many = _blocking(Client.submit_many)
    job = _blocking(Client.job)
    deliveries = _blocking(Client.deliveries)
    events = _iterating(Client.events)
    everything = _iterating(Client.everything)
    wait = _blocking(Client.wait)
    result = _blocking(Client.result)
    output = _blocking(Client.output)
    artifact = _blocking(Client.artifact)
    jobs = _blocking(Client.jobs)
    line = _blocking(Client.line)
    running = _blocking(Client.running)
    workers = _blocking(Client.workers)
    submitter = _blocking(Client.submitter)
    release = _blocking(Client.release)
    delay = _blocking(Client.delay)
    shorten = _blocking(Client.shorten)
    prioritise = _blocking(Client.prioritise)
    retry = _blocking(Client.retry)
    cancel = _blocking(Client.cancel)
    remove = _blocking(Client.remove)
    queues = _blocking(Client.queues)
    queue = _blocking(Client.queue)
    pause = _blocking(Client.pause)
    resume = _blocking(Client.resume)
    check = _blocking(Client.check)
    reconcile = _blocking(Client.reconcile)
    submit_batch = _blocking(Client.submit_batch)
    open_batch = _blocking(Client.open_batch)
    add_jobs = _blocking(Client.add_jobs)
    seal_batch = _blocking(Client.seal_batch)
    batch = _blocking(Client.batch)
    batches = _blocking(Client.batches)
    report = _blocking(Client.report)
    retry_batch = _blocking(Client.retry_batch)
    update_report = _blocking(Client.update_report)
    remove_batch = _blocking(Client.remove_batch)
    batch_events = _iterating(Client.batch_events)
    wait_batch = _blocking(Client.wait_batch)
    hold_job = _blocking(Client.hold_job)
    resume_job = _blocking(Client.resume_job)
    hold_submitter = _blocking(Client.hold_submitter)
    resume_submitter = _blocking(Client.resume_submitter)
    hold_profile = _blocking(Client.hold_profile)
    resume_profile = _blocking(Client.resume_profile)
    hold_batch = _blocking(Client.hold_batch)
    resume_batch = _blocking(Client.resume_batch)
    keys = _blocking(Client.keys)
    create_key = _blocking(Client.create_key)
    revoke_key = _blocking(Client.revoke_key)
    rotate_key = _blocking(Client.rotate_key)
    audit = _blocking(Client.audit)
    each_job = _iterating(Client.each_job)
    each_waiting = _iterating(Client.each_waiting)
    each_running = _iterating(Client.each_running)
    each_worker = _iterating(Client.each_worker)
    each_batch = _iterating(Client.each_batch)
    each_delivery = _iterating(Client.each_delivery)
    each_output = _iterating(Client.each_output)
    each_queue = _iterating(Client.each_queue)
    each_key = _iterating(Client.each_key)
    each_change = _iterating(Client.each_change)
    close = _blocking(Client.close)
