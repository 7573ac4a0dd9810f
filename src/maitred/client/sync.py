"""The sync face of the client: the same coroutines, run on a loop in a thread of their own."""

from collections.abc import Sequence
from functools import partial
from typing import Self

from maitred.background import Blocking, blocking, iterating
from maitred.client.client import Client
from maitred.client.retrying import RETRIES


class SyncClient(Blocking[Client]):
    """Calls one server, as `Client` does, and waits for each answer.

    What is an async iterator there is a plain one here; close it (`contextlib.closing`) to leave it.
    """

    def __init__(self, address: str, *, key: str | None = None, retries: Sequence[float] = RETRIES) -> None:
        """Name the server, and the API key to call it with, if it needs one; `retries` as in `Client`."""
        self.address = address
        super().__init__(partial(Client, address, key=key, retries=retries))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    put = blocking(Client.put)
    put_many = blocking(Client.put_many)
    submit = blocking(Client.submit)
    submit_many = blocking(Client.submit_many)
    job = blocking(Client.job)
    deliveries = blocking(Client.deliveries)
    watch = iterating(Client.watch)
    everything = iterating(Client.everything)
    wait = blocking(Client.wait)
    result = blocking(Client.result)
    output = blocking(Client.output)
    artifact = blocking(Client.artifact)
    jobs = blocking(Client.jobs)
    line = blocking(Client.line)
    running = blocking(Client.running)
    workers = blocking(Client.workers)
    submitter = blocking(Client.submitter)
    release = blocking(Client.release)
    delay = blocking(Client.delay)
    shorten = blocking(Client.shorten)
    prioritise = blocking(Client.prioritise)
    retry = blocking(Client.retry)
    cancel = blocking(Client.cancel)
    remove = blocking(Client.remove)
    queues = blocking(Client.queues)
    queue = blocking(Client.queue)
    pause = blocking(Client.pause)
    resume = blocking(Client.resume)
    check = blocking(Client.check)
    reconcile = blocking(Client.reconcile)
    submit_batch = blocking(Client.submit_batch)
    open_batch = blocking(Client.open_batch)
    add_jobs = blocking(Client.add_jobs)
    seal_batch = blocking(Client.seal_batch)
    batch = blocking(Client.batch)
    batches = blocking(Client.batches)
    report = blocking(Client.report)
    retry_batch = blocking(Client.retry_batch)
    update_report = blocking(Client.update_report)
    remove_batch = blocking(Client.remove_batch)
    watch_batch = iterating(Client.watch_batch)
    wait_batch = blocking(Client.wait_batch)
    hold_job = blocking(Client.hold_job)
    resume_job = blocking(Client.resume_job)
    hold_submitter = blocking(Client.hold_submitter)
    resume_submitter = blocking(Client.resume_submitter)
    hold_profile = blocking(Client.hold_profile)
    resume_profile = blocking(Client.resume_profile)
    hold_batch = blocking(Client.hold_batch)
    resume_batch = blocking(Client.resume_batch)
    keys = blocking(Client.keys)
    create_key = blocking(Client.create_key)
    revoke_key = blocking(Client.revoke_key)
    rotate_key = blocking(Client.rotate_key)
    audit = blocking(Client.audit)
    each_job = iterating(Client.each_job)
    each_waiting = iterating(Client.each_waiting)
    each_running = iterating(Client.each_running)
    each_worker = iterating(Client.each_worker)
    each_batch = iterating(Client.each_batch)
    each_delivery = iterating(Client.each_delivery)
    each_output = iterating(Client.each_output)
    each_queue = iterating(Client.each_queue)
    each_key = iterating(Client.each_key)
    each_change = iterating(Client.each_change)
    close = blocking(Client.close)
