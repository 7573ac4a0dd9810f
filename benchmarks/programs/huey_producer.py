"""huey's producer: calling the task, its only way; `map` calls it once per job too."""

import time

from benchmarks.programs.huey_app import desk, noop, stamp
from benchmarks.programs.producer import Ways, serve


class Huey(Ways):
    def one_by_one(self, numbers: range, payload: str) -> None:
        extra = (payload,) if payload else ()
        for number in numbers:
            noop(number, *extra)

    def stamped(self) -> None:
        stamp(time.monotonic_ns())


if __name__ == "__main__":
    serve(Huey(), desk)
