"""The huey application that its producer and consumer share. No results are kept: a no-op has none."""

import os
from typing import Any

from huey import RedisHuey  # type: ignore[import-not-found]

from benchmarks.programs.desk import Desk
from benchmarks.programs.tally import Tally

huey: Any = RedisHuey("bench", url=f"unix://{os.environ['BENCH_STORE']}", results=False)
desk = Desk()
tally = Tally(desk)


def _noop(number: int, _payload: str = "") -> None:
    tally.ran(number)


def _stamp(sent: int) -> None:
    tally.started(sent)


noop: Any = huey.task(name="noop")(_noop)
stamp: Any = huey.task(name="stamp")(_stamp)
