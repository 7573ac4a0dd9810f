"""A PUT writes the tree and then the line; between the two others compare them, or the one who puts dies."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from maitred.core.batch import Batch, BatchOrder
from maitred.core.job import Band, Order
from maitred.core.stages import INGEST
from maitred.service.clerk import Clerk
from maitred.store.zookeeper import intake
from maitred.wire.codec import encode_json
from tests.service.post import postman
from tests.zookeeper.house import U1, House, ingest
from tests.zookeeper.test_losses import Opener, begin, dies, houses, lines

__all__ = ["houses", "lines"]
ROWS = 5


class Killed(BaseException):
    """The process is gone: nothing that it would have done afterwards is done."""


def before_each_put(house: House, act: Callable[[], Awaitable[object]], patch: pytest.MonkeyPatch) -> None:
    """Let something happen each time when the tree has the jobs of a PUT, and the line has not."""
    put = house.line.put

    async def crossed(orders: Sequence[Order]) -> object:
        await act()
        return await put(orders)

    patch.setattr(house.line, "put", crossed)


def once(act: Callable[[], Awaitable[object]]) -> Callable[[], Awaitable[None]]:
    """Give something that happens the first time only."""
    acts = iter([act])

    async def first() -> None:
        for each in acts:
            await each()

    return first


def mortal(house: House, steps: int, patch: pytest.MonkeyPatch) -> None:
    """Kill whoever takes the n-th step in the tree or in the line, before it is taken."""
    left = steps

    def counted(verb: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def step(*args: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if left <= 0:
                raise Killed
            return await verb(*args, **named)

        return step

    for part, name in ((house.ledger.session, "multi"), (house.line, "put"), (house.line, "restore")):
        patch.setattr(part, name, counted(getattr(part, name)))


async def submit(house: House) -> str:
    """Submit a batch with a manifest of some rows."""
    text = "name\n" + "".join(f"object-{n}\n" for n in range(ROWS))
    sent = {"submitter": {"type": "user", "id": "1"}, "manifest_type": "object-manifest", "payload": text}
    order = BatchOrder("", U1, "", encode_json(sent), expanding=True, sealed=True)
    return (await house.store.create_batch(order)).id


async def batch_of(house: House, bid: str) -> Batch:
    batch = await house.store.batch(bid)
    assert batch
    return batch


@pytest.mark.parametrize("in_batch", [False, True], ids=["alone", "in-a-batch"])
async def test_a_job_that_comes_into_the_line_while_it_is_put_is_kept(
    houses: Opener, monkeypatch: pytest.MonkeyPatch, in_batch: bool
) -> None:
    one, other = await houses(), await houses()
    bid = await one.batch() if in_batch else ""
    before_each_put(one, other.store.reconcile, monkeypatch)
    puts = await one.put("a", "b", batch=bid)
    assert [put.outcome for put in puts] == ["created", "created"]
    assert await other.states("a") == await other.states("b") == ("pending", "pending")
    assert len(await other.work()) == 2 * len(INGEST)
    assert await other.states("a") == await other.states("b") == ("completed", "completed")


@pytest.mark.parametrize("in_batch", [False, True], ids=["alone", "in-a-batch"])
async def test_a_version_that_comes_into_the_line_while_it_is_put_is_kept(
    houses: Opener, monkeypatch: pytest.MonkeyPatch, in_batch: bool
) -> None:
    one, other = await houses(), await houses()
    bid = await one.batch() if in_batch else ""
    await one.put("a", batch=bid)
    await begin(one, "w")
    before_each_put(one, other.store.reconcile, monkeypatch)
    [put] = await one.put("a")
    assert (put.outcome, put.version) == ("next-version", 2)
    assert ((await other.job("a")).version, (await other.entry("a")).batch) == (2, bid)


async def test_a_change_that_comes_into_the_line_while_it_is_put_is_made_once_more(
    houses: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = await houses(), await houses()
    await one.put("a")
    before_each_put(one, once(other.store.reconcile), monkeypatch)
    body = encode_json({"key": "a", "run": {"args": {"n": 1}}})
    [put] = await one.store.put([ingest("a", priority=2, band=Band.IMMEDIATE)._replace(body=body)])
    assert put.outcome == "upgraded"  # type: ignore[union-attr]
    job, entry = await other.job("a"), await other.entry("a")
    assert (job.body, job.priority, job.status, job.band) == (body, 2, entry.mark, Band.IMMEDIATE)
    assert (entry.body, entry.priority) == (body, 2)


async def test_of_two_changes_that_cross_line_and_tree_have_the_same(
    houses: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = await houses(), await houses()
    await one.put("a")
    before_each_put(one, once(lambda: other.put("a", priority=3)), monkeypatch)
    await one.put("a", priority=2)
    assert (await other.job("a")).priority == (await other.entry("a")).priority


async def test_of_two_that_put_a_new_key_at_once_the_second_changes_the_job_of_the_first(
    houses: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = await houses(), await houses()
    before_each_put(one, once(lambda: other.put("a", priority=3)), monkeypatch)
    [put] = await one.put("a", priority=2)
    assert (put.outcome, put.version) == ("updated", 1)
    assert (await other.job("a")).priority == (await other.entry("a")).priority == 2
    assert len([entry async for entry in other.ledger.unended()]) == 1


async def test_a_row_whose_key_another_took_meanwhile_is_refused_and_touches_nothing(
    houses: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = await houses(), await houses()
    bid = await one.batch()
    before_each_put(one, once(lambda: other.put("a", priority=3)), monkeypatch)
    assert await one.store.put([ingest("a", priority=2, batch=bid, only_new=True)]) == ["other-batch"]
    assert (await other.job("a")).priority == (await other.entry("a")).priority == 3
    assert sum((await batch_of(other, bid)).counts.values()) == 0


async def test_a_run_that_is_handed_back_while_its_next_version_is_put_is_changed_instead(
    houses: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = await houses(), await houses()
    bid = await one.batch()
    await one.put("a", batch=bid)
    start = await begin(one, "w")
    await one.store.leave("w")
    before_each_put(one, once(lambda: one.store.hand_back("w", [start.lease])), monkeypatch)
    [put] = await one.put("a", priority=2)
    assert (put.outcome, put.version) == ("updated", 1)
    job, entry = await other.job("a"), await other.entry("a")
    assert (job.ledger, job.priority, entry.priority) == (start.ledger, 2, 2)
    assert (await batch_of(other, bid)).unfinished == 1


async def test_a_clerk_that_dies_at_any_step_leaves_rows_that_are_all_there_in_the_end(
    houses: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between tree and line of the one who goes on, a third compares the two each time."""
    monkeypatch.setattr(intake, "CHUNK", 2)
    other, third = await houses(), await houses()
    before_each_put(other, third.store.reconcile, monkeypatch)
    steps, killed = 0, True
    while killed:
        steps += 1
        one, killed = await houses(), False
        bid = await submit(one)
        with monkeypatch.context() as patched:
            mortal(one, steps, patched)
            try:
                await Clerk(one.store, "mortal", postman()).work_off()
            except Killed:
                killed = True
        await dies(one)
        await Clerk(other.store, "clerk", postman()).work_off()
        batch = await batch_of(other, bid)
        assert (batch.sealed, batch.fault, batch.unfinished) == (True, "", ROWS), steps
        assert len(await other.work()) == ROWS * len(INGEST), steps
        await Clerk(other.store, "clerk", postman()).work_off()
        batch = await batch_of(other, bid)
        assert (batch.state, batch.sequence, batch.counts["completed"]) == ("completed", 1, ROWS), steps
    assert steps > 9, "there were so many steps to die at"
