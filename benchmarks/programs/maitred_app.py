"""The Maitred application that its producer and worker share: what `maitred work --app` loads."""

import os

from benchmarks.programs.desk import Desk
from benchmarks.programs.tally import Tally
from maitred.service.queue import Queue

queue = Queue("bench", f"unix://{os.environ['BENCH_STORE']}")
desk = Desk()
tally = Tally(desk)


@queue.handler("noop")
async def noop(number: int, payload: str = "") -> None:
    del payload
    tally.ran(number)


@queue.handler("stamp")
async def stamp(sent: int) -> None:
    tally.started(sent)


# The command that loads this module has no other way to say that it is there.
if os.environ.get("BENCH_ROLE") == "worker":
    desk.say(ready=True)
