"""B24 for the two together: where line and tree agree nothing is named, and else exactly that."""

import pytest

from maitred.core.stages import INGEST
from maitred.store.zookeeper import reconciling
from maitred.store.zookeeper.payloads import Reason
from tests.zookeeper.house import House


async def codes(house: House) -> list[str]:
    return [violation.code for violation in await house.store.check()]


@pytest.fixture
async def busy(house: House) -> House:
    bid = await house.batch()
    await house.put("a", "b", "c", batch=bid)
    await house.store.hold("job", "c", "ada", "")
    await house.store.hold("profile", "p", "ada", "")
    assert await codes(house) == []
    return house


async def test_a_job_that_the_line_does_not_know_is_named_and_reconciled(busy: House) -> None:
    await busy.line.remove("a")
    assert await codes(busy) == ["ledger-unknown-here"]
    tally = await busy.store.reconcile()
    assert tally
    assert (len(tally.made), tally.changed) == (1, [])


async def test_a_job_that_the_tree_does_not_know_is_named_and_reconciled(busy: House) -> None:
    await busy.put("d")
    await busy.ledger.jobs.delete((await busy.job("d")).ledger, forget=True)
    assert await codes(busy) == ["ledger-unknown-there"]
    tally = await busy.store.reconcile()
    assert tally
    assert len(tally.removed) == 1
    assert await busy.store.read(["d"]) == [None]


async def test_many_that_the_tree_does_not_know_are_all_reconciled_at_once(
    busy: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciling, "PAGE", 2)
    keys = ["d", "e", "f", "g"]
    await busy.put(*keys)
    for key in keys:
        await busy.store.hold("job", key, "ada", "")
    for key in keys:
        await busy.ledger.jobs.delete((await busy.job(key)).ledger, forget=True)
    tally = await busy.store.reconcile()
    assert tally
    assert len(tally.removed) == len(keys)
    assert await busy.store.read(keys) == [None] * len(keys)


async def test_a_job_in_two_states_is_named_and_reconciled(busy: House) -> None:
    await busy.ledger.jobs.fail((await busy.job("b")).ledger, None, "other", "by hand")
    assert await codes(busy) == ["ledger-state"]
    tally = await busy.store.reconcile()
    assert tally
    assert len(tally.changed) == 1
    assert (await busy.job("b")).state(INGEST) == "failed"


async def test_a_hold_in_one_of_them_is_named_and_reconciled(busy: House) -> None:
    await busy.ledger.hold(Reason("submitter", "user.7"))
    await busy.line.unhold("profile", "p")
    assert await codes(busy) == ["ledger-hold", "ledger-hold"]
    await busy.store.reconcile()
    holds = {(held.kind, held.name) for held in (await busy.store.status()).holds}
    assert holds == {("submitter", "user.7"), ("profile", "p")}


async def test_repair_reconciles(busy: House) -> None:
    await busy.line.remove("a")
    await busy.store.check(repair=True)
    assert await codes(busy) == []
