"""The bare hand-off's producer: one RPUSH."""

import time

from benchmarks.programs.bare_app import KEY, connect
from benchmarks.programs.desk import Desk
from benchmarks.programs.producer import Ways, serve


class Bare(Ways):
    def __init__(self) -> None:
        self._client = connect()

    def stamped(self) -> None:
        self._client.rpush(KEY, time.monotonic_ns())


if __name__ == "__main__":
    serve(Bare(), Desk())
