"""What a Python worker's handlers call: the tally of jobs that ran, and the stamp of one that started.

The tally counts distinct jobs, so a job that ran twice cannot stand in for one that never did, and tells
the harness once, when all have run. Until then it costs a handler well under a microsecond and no
traffic.
"""

import itertools
import os
import time

from benchmarks.programs.desk import Desk


class Tally:
    """Counts the jobs 0..BENCH_JOBS-1 and reports the time from the first that ran to the last."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._jobs = int(os.environ.get("BENCH_JOBS", "0"))
        self._seen = bytearray(max(self._jobs, 1 << 20))
        # Handlers run in several threads: taking the next number is atomic, adding one is not.
        self._next = itertools.count(1)
        self._first = 0

    def ran(self, number: int) -> None:
        """Note that a job ran; the last of all is reported."""
        if self._seen[number]:
            return
        self._seen[number] = 1
        count = next(self._next)
        if count == 1:
            self._first = time.monotonic_ns()
        if count == self._jobs:
            self._desk.say(jobs=count, nanoseconds=time.monotonic_ns() - self._first)

    def started(self, sent: int) -> None:
        """Report the time between a job's sending and now; call it first of all."""
        now = time.monotonic_ns()
        self._desk.say(nanoseconds=now - sent)
