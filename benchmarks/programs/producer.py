"""What every Python producer does when it is asked: enqueue so many jobs in one of three ways, timed.

A system's producer gives the three ways (`Ways`) and calls `serve`. A timed request first enqueues some
jobs untimed, so that connections, script caches and, in Node's twin of this file, compiled code are warm
for all.
"""

import time
from typing import Any, Protocol

from benchmarks.programs.desk import Desk


class Ways:
    """How a system enqueues; jobs are numbered, and carry `payload` if it is not empty."""

    def one_by_one(self, numbers: range, payload: str) -> None:
        """Enqueue each job by a call of its own, each finished before the next."""
        raise NotImplementedError

    def in_bulk(self, numbers: range, payload: str) -> None:
        """Enqueue all jobs by the system's call for many."""
        raise NotImplementedError

    def stamped(self) -> None:
        """Enqueue one job that carries the time right before the call."""
        raise NotImplementedError


class Enqueue(Protocol):
    def __call__(self, numbers: range, payload: str) -> None: ...


def serve(ways: Ways, desk: Desk) -> None:
    """Answer the harness until it hangs up."""
    desk.say(ready=True)
    upto = 0
    for request in desk.requests():
        if request["do"] == "stamp":
            # No answer: reading it would wake the harness just when the worker is to start.
            ways.stamped()
            continue
        enqueue: Enqueue = ways.in_bulk if request["do"] == "bulk" else ways.one_by_one
        try:
            upto, nanoseconds = _timed(enqueue, request, upto)
        except Exception as error:  # noqa: BLE001 - the harness tells it
            desk.say(error=repr(error))
        else:
            desk.say(nanoseconds=nanoseconds)


def _timed(enqueue: Enqueue, request: dict[str, Any], number: int) -> tuple[int, int]:
    warm = range(number, number + request.get("warm", 0))
    timed = range(warm.stop, warm.stop + request["jobs"])
    payload = "x" * request.get("payload", 0)
    if warm:
        enqueue(warm, payload)
    start = time.monotonic_ns()
    enqueue(timed, payload)
    return timed.stop, time.monotonic_ns() - start
