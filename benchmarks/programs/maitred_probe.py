"""Maitred's probe: it does to the store what producers and workers do, in calls of a chosen size.

It speaks to the store's port, not to the queue's public face: what is asked is what the server spends, and a
client that gathers calls by itself would blur how many jobs went in one. See `figures/server_time.py`.
"""

import asyncio
import itertools
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import uvloop

from benchmarks.programs.desk import Desk
from maitred.core.classes import DurationClass, Limit
from maitred.core.job import Finish, Order, Start, Submitter
from maitred.core.settings import MINUTE, SECOND, Settings
from maitred.service.desk import Desk as ServerDesk
from maitred.service.foresight import Foresight
from maitred.service.foresights import Foresights
from maitred.service.lanes import standing
from maitred.store.connect import connect
from maitred.store.port import Stores

_WORKER = "probe"
_FILL = 200
_CROWDED = (
    DurationClass("fast", 3 * SECOND),
    DurationClass("medium", 10 * SECOND, Limit(2)),
    DurationClass("slow", 30 * MINUTE, Limit(1)),
)
# Nothing here renews leases, and the line may be longer than a queue's usual bound.
_SETTINGS = Settings(lease=30 * MINUTE, max_total=10_000_000, max_per_submitter=1_000_000)


class Probe:
    """A queue, its submitters, and one worker that joins and leaves."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._store = stores.queue("bench")
        self._numbers = itertools.count()
        self._running: list[Start] = []
        self._submitters = 1
        self._level = 1
        self._body = b""
        self._needs = ["noop", "handler:noop"]

    async def fill(self, jobs: int, submitters: int, payload: int) -> None:
        self._submitters, self._body = submitters, b"x" * payload
        await self.submit(jobs, _FILL)

    async def pipeline(self, stages: int) -> None:
        """Let the queue have so many stages; with one, a job's end is the end of its stage."""
        if stages > 1:
            names = tuple(f"stage{number}" for number in range(1, stages + 1))
            await self._store.configure(replace(_SETTINGS, stages=names))
            self._needs = [f"stage:{name}" for name in names]

    async def submit(self, jobs: int, per_call: int) -> None:
        for size in _portions(jobs, per_call):
            await self._store.put([self._order() for _ in range(size)])

    async def crowd(self, jobs: int, submitters: int) -> None:
        """Let so many slow jobs wait behind one that has all of their level; a slot stays free."""
        await self._store.configure(replace(_SETTINGS, classes=_CROWDED))
        self._submitters, self._level = submitters, len(_CROWDED)
        await self._store.join(_WORKER, 2, ["noop"])
        await self.submit(jobs + 1, _FILL)
        self._level = 1

    async def overtake(self, jobs: int) -> None:
        """Let fast jobs pass the crowd, one after another: each is submitted, starts and ends."""
        for _ in range(jobs):
            await self._store.put([self._order()])
            starts = [each for each in await self._store.park(_WORKER, 5) if isinstance(each, Start)]
            await self._store.finish(_WORKER, [Finish(each.lease) for each in starts[-1:]])

    async def join(self, slots: int) -> None:
        self._running = (await self._store.join(_WORKER, slots, self._needs)).starts

    async def start(self, jobs: int) -> None:
        """Finish what runs and start as many, call after call, until so many have started."""
        started = 0
        while started < jobs:
            shift = await self._store.finish(_WORKER, [Finish(each.lease) for each in self._running])
            self._running = shift.starts
            started += len(shift.starts)

    async def foresee(self, samples: int) -> dict[str, list[float]]:
        """Submit, and move the head, in a server that foresees; give the milliseconds that it takes."""
        lookout = Foresights(self._stores)
        running = asyncio.create_task(lookout.run())
        await asyncio.sleep(0)
        foresight = lookout.of(self._store.queue)
        assert foresight is not None
        await foresight.ready.wait()
        desk = ServerDesk(self._stores, foresights=lookout)
        begun = time.perf_counter()
        while not (await self._submit_shown(desk, "first"))["estimate"]:  # noqa: ASYNC110 - it is measured
            await asyncio.sleep(0.05)
        deep = [1e3 * (time.perf_counter() - begun)]
        submits, heads = [], []
        for number in range(samples):
            begun = time.perf_counter()
            document = await self._submit_shown(desk, str(number))
            submits.append(1e3 * (time.perf_counter() - begun))
            if not document["estimate"]:
                raise RuntimeError("a job was submitted and nothing was foreseen for it")
            if number % 4 == 0:
                heads.append(await self._move_head(foresight))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return {"submit": submits, "head": heads, "deep": deep}

    async def _submit_shown(self, desk: ServerDesk, key: str) -> dict[str, Any]:
        who = {"type": "user", "id": key}
        return await desk.put(
            self._store.queue, {"key": key, "submitter": who, "run": {"handler": "noop", "args": {}}}
        )

    async def _move_head(self, foresight: Foresight) -> float:
        """Let the first in line start; give the milliseconds until the second is foreseen as the first."""
        place = standing((await self._store.line(None, 2)).views[1])
        begun = time.perf_counter()
        shift = await self._store.finish(_WORKER, [Finish(each.lease) for each in self._running[:1]])
        self._running = [*self._running[1:], *shift.starts]
        while not (foresight.position(*place) == 1 and foresight.current):  # noqa: ASYNC110 - the same
            await asyncio.sleep(0.001)
        foresight.foresee(*place, foresight.now)
        return 1e3 * (time.perf_counter() - begun)

    async def leave(self) -> None:
        await self._store.leave(_WORKER)
        await self._store.finish(_WORKER, [Finish(each.lease) for each in self._running])

    def _order(self) -> Order:
        number = next(self._numbers)
        submitter = Submitter("user", str(number % self._submitters))
        return Order(
            id=f"{number:032x}",
            submitter=submitter,
            need=self._needs[0],
            body=self._body,
            level=self._level,
            elastic=self._level == 0,
        )


def _portions(total: int, size: int) -> Iterator[int]:
    for begun in range(0, total, size):
        yield min(size, total - begun)


async def serve(desk: Desk) -> None:
    stores = connect(f"unix://{os.environ['BENCH_STORE']}")
    await stores.queue("bench").configure(_SETTINGS)
    probe = Probe(stores)
    desk.say(ready=True)
    for request in desk.requests():
        words: dict[str, Any] = dict(request)
        answer = await getattr(probe, words.pop("do"))(**words)
        desk.say(done=True, **(answer or {}))
    await stores.close()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(Desk()))
