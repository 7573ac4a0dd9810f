"""The sync face of a queue: the same coroutines, run on a loop in a thread of their own."""

from maitred.background import Blocking, blocking
from maitred.service.queue import Queue


class SyncQueue(Blocking[Queue]):
    """A queue whose methods block; get one as `queue.sync`."""

    put = blocking(Queue.put)
    put_many = blocking(Queue.put_many)
    job = blocking(Queue.job)
    output = blocking(Queue.output)
    artifact = blocking(Queue.artifact)
    deliveries = blocking(Queue.deliveries)
    line = blocking(Queue.line)
    release = blocking(Queue.release)
    delay = blocking(Queue.delay)
    shorten = blocking(Queue.shorten)
    remove = blocking(Queue.remove)
    cancel = blocking(Queue.cancel)
    prioritise = blocking(Queue.prioritise)
    retry = blocking(Queue.retry)
    hold = blocking(Queue.hold)
    resume = blocking(Queue.resume)
    hold_submitter = blocking(Queue.hold_submitter)
    resume_submitter = blocking(Queue.resume_submitter)
    hold_profile = blocking(Queue.hold_profile)
    resume_profile = blocking(Queue.resume_profile)
    submit_batch = blocking(Queue.submit_batch)
    add_jobs = blocking(Queue.add_jobs)
    seal_batch = blocking(Queue.seal_batch)
    batch = blocking(Queue.batch)
    batches = blocking(Queue.batches)
    report = blocking(Queue.report)
    hold_batch = blocking(Queue.hold_batch)
    resume_batch = blocking(Queue.resume_batch)
    retry_batch = blocking(Queue.retry_batch)
    update_report = blocking(Queue.update_report)
    remove_batch = blocking(Queue.remove_batch)
    close = blocking(Queue.close)
