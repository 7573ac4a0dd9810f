"""Submits that are made together travel together: one script call carries many callers' jobs.

A submit that finds nothing under way leaves at once. Those that come while it is under way are gathered for
one turn of the event loop, and leave in calls of up to 128 jobs.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from maitred.core.job import Order, Put, Refusal

MOST = 128
_Answers = list[Put | Refusal]
_Waiting = tuple[Sequence[Order], "asyncio.Future[_Answers]"]


class Coalescer:
    """Gathers what is submitted at the same time."""

    def __init__(self, send: Callable[[Sequence[Order]], Awaitable[_Answers]]) -> None:
        self._send = send
        self._waiting: list[_Waiting] = []
        self._under_way = 0
        self._sending: set[asyncio.Task[None]] = set()

    async def put(self, orders: Sequence[Order]) -> _Answers:
        """Send these orders, with whatever else is submitted now; give their answers."""
        if self._under_way and len(orders) < MOST:
            return await self._gather(orders)
        self._under_way += 1
        try:
            return await self._send(orders)
        finally:
            self._under_way -= 1

    def _gather(self, orders: Sequence[Order]) -> "asyncio.Future[_Answers]":
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_Answers] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._depart)
        self._waiting.append((orders, future))
        return future

    def _depart(self) -> None:
        waiting, self._waiting = self._waiting, []
        load: list[_Waiting] = []
        size = 0
        for entry in waiting:
            if load and size + len(entry[0]) > MOST:
                self._start(load)
                load, size = [], 0
            load.append(entry)
            size += len(entry[0])
        self._start(load)

    def _start(self, load: list[_Waiting]) -> None:
        task = asyncio.ensure_future(self._carry(load))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _carry(self, load: list[_Waiting]) -> None:
        """Send one call for many; whatever it raises is raised to each of them."""
        self._under_way += 1
        try:
            answers = await self._send([order for some, _ in load for order in some])
        except BaseException as error:
            for _, future in load:
                if not future.done():
                    future.set_exception(error)
            if not isinstance(error, Exception):
                raise
            return
        finally:
            self._under_way -= 1
        at = 0
        for some, future in load:
            if not future.done():
                future.set_result(answers[at : at + len(some)])
            at += len(some)
