"""Submits that are made together travel together: one script call carries many callers' jobs."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from maitred.core.job import Order, Put, Refusal

MOST = 128
_Answers = list[Put | Refusal]
_Waiting = tuple[Sequence[Order], "asyncio.Future[_Answers]"]


class Coalescer:
    """Gathers what is submitted in one turn of the event loop."""

    def __init__(self, send: Callable[[Sequence[Order]], Awaitable[_Answers]]) -> None:
        self._send = send
        self._waiting: list[_Waiting] = []
        self._sending: set[asyncio.Task[None]] = set()

    async def put(self, orders: Sequence[Order]) -> _Answers:
        """Send these orders with whatever else is submitted now; give their answers."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_Answers] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._depart)
        self._waiting.append((orders, future))
        return await future

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
        orders = [order for some, _ in load for order in some]
        try:
            answers = await self._send(orders)
        except BaseException as error:
            for _, future in load:
                if not future.done():
                    future.set_exception(error)
            if not isinstance(error, Exception):
                raise
            return
        at = 0
        for some, future in load:
            if not future.done():
                future.set_result(answers[at : at + len(some)])
            at += len(some)
