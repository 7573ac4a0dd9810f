"""The dramatiq application that its producer and worker share.

Default middleware, as its guide has it. What the settings of the worker are, and why, is in
`systems/dramatiq.py`.
"""

import os
from typing import Any

import dramatiq  # type: ignore[import-not-found]
from dramatiq.brokers.redis import RedisBroker  # type: ignore[import-not-found]

from benchmarks.programs.desk import Desk
from benchmarks.programs.tally import Tally

broker: Any = RedisBroker(url=f"unix://{os.environ['BENCH_STORE']}")
dramatiq.set_broker(broker)
desk = Desk()
tally = Tally(desk)


def _noop(number: int, _payload: str = "") -> None:
    tally.ran(number)


def _stamp(sent: int) -> None:
    tally.started(sent)


noop: Any = dramatiq.actor(_noop, actor_name="noop")
stamp: Any = dramatiq.actor(_stamp, actor_name="stamp")
