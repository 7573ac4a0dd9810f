"""dramatiq's producer: `actor.send`, its only way; a group sends its messages one by one too."""

import time

from benchmarks.programs.dramatiq_app import desk, noop, stamp
from benchmarks.programs.producer import Ways, serve


class Dramatiq(Ways):
    def one_by_one(self, numbers: range, payload: str) -> None:
        extra = (payload,) if payload else ()
        for number in numbers:
            noop.send(number, *extra)

    def stamped(self) -> None:
        stamp.send(time.monotonic_ns())


if __name__ == "__main__":
    serve(Dramatiq(), desk)
