"""Submits that come together: who leaves when, and with whom."""

import asyncio
from collections.abc import Sequence

import pytest

from maitred.core.job import Order, Submitter
from maitred.store.valkey.coalesce import MOST, Coalescer


class Road:
    """Where calls go to the store; each waits there until it is let back."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.back = asyncio.Event()
        self.coalescer = Coalescer(self._send)

    async def _send(self, orders: Sequence[Order]) -> list[str]:
        self.calls.append([order.id for order in orders])
        await self.back.wait()
        if orders[0].id == "lost":
            raise ConnectionError
        return [order.id for order in orders]

    def put(self, *ids: str) -> "asyncio.Task[list[str]]":
        orders = [Order(id, Submitter("user", "1"), "need", b"") for id in ids]
        return asyncio.create_task(self.coalescer.put(orders))


async def turns() -> None:
    """Let all tasks begin."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_lone_submit_leaves_at_once_and_those_after_it_together() -> None:
    road = Road()
    waiting = [road.put("a"), road.put("b"), road.put("c", "d")]
    await turns()
    assert road.calls == [["a"]]
    road.back.set()
    assert await asyncio.gather(*waiting) == [["a"], ["b"], ["c", "d"]]
    assert road.calls == [["a"], ["b", "c", "d"]]


async def test_a_full_call_waits_for_nobody_and_holds_nobody() -> None:
    road = Road()
    many = [str(number) for number in range(MOST)]
    waiting = [road.put(*many), road.put("a"), road.put(*many), road.put("b")]
    await turns()
    assert road.calls == [many, ["a"], many]
    road.back.set()
    assert [len(answer) for answer in await asyncio.gather(*waiting)] == [MOST, 1, MOST, 1]


async def test_more_than_a_call_holds_do_not_wait_for_the_one_under_way() -> None:
    road = Road()
    waiting = [road.put("a"), *(road.put(str(number)) for number in range(MOST + 1))]
    await turns()
    assert [len(call) for call in road.calls] == [1, MOST]
    road.back.set()
    assert len(await asyncio.gather(*waiting)) == MOST + 2


async def test_what_a_call_raises_is_raised_to_all_in_it() -> None:
    road = Road()
    waiting = [road.put("a"), road.put("lost"), road.put("b")]
    await turns()
    road.back.set()
    assert await waiting[0] == ["a"]
    for each in waiting[1:]:
        with pytest.raises(ConnectionError):
            await each
    assert await road.put("c") == ["c"]
