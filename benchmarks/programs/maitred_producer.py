"""Maitred's producer: `put` one by one and `put_many`, on uvloop; jobs belong to a thousand submitters."""

import asyncio
import itertools
import os
import time

import uvloop

from benchmarks.programs.maitred_app import desk, queue
from benchmarks.programs.producer import Ways, serve

_SUBMITTERS = 1_000
# The classes that jobs ask for in turn; an empty name asks for none.
_CLASSES = os.environ.get("BENCH_CLASSES", "").split(",")


class Maitred(Ways):
    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner
        self._stamps = itertools.count()

    def one_by_one(self, numbers: range, payload: str) -> None:
        self._runner.run(self._one_by_one(numbers, payload))

    def in_bulk(self, numbers: range, payload: str) -> None:
        answers = self._runner.run(queue.put_many([_body(number, payload) for number in numbers]))
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer

    def stamped(self) -> None:
        self._runner.run(self._stamped())

    async def _one_by_one(self, numbers: range, payload: str) -> None:
        for number in numbers:
            await queue.put(
                f"job-{number}",
                submitter=f"user:{number % _SUBMITTERS}",
                handler="noop",
                args=_args(number, payload),
            )

    async def _stamped(self) -> None:
        key = f"stamp-{next(self._stamps)}"
        await queue.put(key, submitter="user:0", handler="stamp", args={"sent": time.monotonic_ns()})


def _body(number: int, payload: str) -> dict[str, object]:
    asked = _CLASSES[number % len(_CLASSES)]
    return {
        "key": f"job-{number}",
        "submitter": {"type": "user", "id": str(number % _SUBMITTERS)},
        "run": {"handler": "noop", "args": _args(number, payload)},
        **({"class": asked} if asked else {}),
    }


def _args(number: int, payload: str) -> dict[str, object]:
    return {"number": number, "payload": payload} if payload else {"number": number}


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        serve(Maitred(runner), desk)
