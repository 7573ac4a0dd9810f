"""Submits that are made together travel together: one script call carries many callers' jobs.

A submit that finds nothing under way leaves at once. Those that come while one is under way gather, and leave
in one call when it is back, or as soon as there are 128 of them. A full call waits for nobody and holds up
nobody.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from maitred.core.job import Order

MOST = 128
Answer = TypeVar("Answer")


class Coalescer(Generic[Answer]):
    """Gathers what is submitted at the same time; `send` gives an answer for each order."""

    def __init__(self, send: Callable[[Sequence[Order]], Awaitable[list[Answer]]]) -> None:
        self._send = send
        self._waiting: list[tuple[Sequence[Order], asyncio.Future[list[Answer]]]] = []
        self._jobs = 0
        self._under_way = 0
        self._sending: set[asyncio.Task[None]] = set()

    async def put(self, orders: Sequence[Order]) -> list[Answer]:
        """Send these orders, with whatever else is submitted now; give their answers."""
        if len(orders) >= MOST:
            return await self._send(orders)
        if not self._under_way:
            self._under_way += 1
            try:
                return await self._send(orders)
            finally:
                self._arrive()
        if self._jobs + len(orders) > MOST:
            self._depart()
        future: asyncio.Future[list[Answer]] = asyncio.get_running_loop().create_future()
        self._waiting.append((orders, future))
        self._jobs += len(orders)
        return await future

    def _arrive(self) -> None:
        self._under_way -= 1
        if self._waiting and not self._under_way:
            self._depart()

    def _depart(self) -> None:
        load, self._waiting, self._jobs = self._waiting, [], 0
        task = asyncio.ensure_future(self._carry(load))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)
        # Counted from now on: whoever comes before the task begins is not to overtake it.
        self._under_way += 1

    async def _carry(self, load: "list[tuple[Sequence[Order], asyncio.Future[list[Answer]]]]") -> None:
        """Send one call for many; whatever it raises is raised to each of them."""
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
            self._arrive()
        at = 0
        for some, future in load:
            if not future.done():
                future.set_result(answers[at : at + len(some)])
            at += len(some)
