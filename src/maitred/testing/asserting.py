"""What tests say of a job: it must be so, or they are told what has become of it instead."""

from typing import Any

from maitred.wire import JobDocument


def must_be_completed(job: JobDocument) -> Any:
    """Give the result of a job that has completed; `AssertionError` with what it is instead."""
    if job.state != "completed":
        raise AssertionError(f"{job.key} is not completed: {_told(job)}")
    return job.result


def must_be_failed(job: JobDocument, code: str | None) -> JobDocument:
    """Give a job that has failed, with this code if one is named; `AssertionError` otherwise."""
    if job.state != "failed" or code not in (None, job.code):
        raise AssertionError(f"{job.key} has not failed{f' with {code}' if code else ''}: {_told(job)}")
    return job


def must_be_waiting(job: JobDocument, code: str | None) -> JobDocument:
    """Give a job that waits, for this reason if one is named; `AssertionError` otherwise."""
    reason = job.waiting_for.code if job.waiting_for else None
    if job.phase != "waiting" or code not in (None, reason):
        raise AssertionError(f"{job.key} does not wait{f' for {code}' if code else ''}: {_told(job)}")
    return job


def _told(job: JobDocument) -> str:
    words = [job.state, job.phase, job.code, job.message, job.waiting_for and job.waiting_for.text]
    return ", ".join(str(word) for word in words if word)
