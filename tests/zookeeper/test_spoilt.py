"""What another program spoilt in the tree keeps nothing else from going on; `check` names it."""

import pytest

from maitred.core.batch import BatchState
from maitred.errors import StoreError
from maitred.store.zookeeper.session import Put
from tests.zookeeper.house import House

pytestmark = [
    pytest.mark.parametrize("line", ["memory"], indirect=True),
    pytest.mark.parametrize("layout", ["seed"], indirect=True),
]

TOKEN = b"t" * 16


async def test_a_spoilt_batch_keeps_no_other_from_being_worked_on(house: House) -> None:
    spoilt, good = await house.batch(), await house.batch()
    await house.put("lost", batch=spoilt)
    await house.put("a", batch=good)
    await house.store.seal_batch(good)
    path = house.ledger.tree.batch(spoilt, "status")
    before = await house.ledger.session.get(path)
    assert before
    await house.ledger.session.multi([Put(path, b"spoilt")])
    await house.work()
    assert await house.states("lost") == ("completed", "completed")
    errand = await house.store.lock_batch("me", TOKEN)
    assert errand
    assert (errand.batch.id, errand.work) == (good, "report")
    assert await house.store.report_batch(good, TOKEN, b'{"sequence":1}', send=False) is BatchState.COMPLETED
    await house.store.sweep_tree()
    assert await house.store.reconcile()
    assert [batch.id for batch in (await house.store.batches()).batches] == [good]
    with pytest.raises(StoreError, match=spoilt):
        await house.store.batch(spoilt)
    assert [each.code for each in await house.store.check()] != []
    await house.ledger.session.multi([Put(path, before.data)])


async def test_a_spoilt_job_keeps_no_other_from_coming_into_line(house: House) -> None:
    await house.put("spoilt", "a")
    path = house.ledger.tree.job((await house.job("spoilt")).ledger, "status")
    before = await house.ledger.session.get(path)
    assert before
    await house.ledger.session.multi([Put(path, b"spoilt")])
    await house.line.remove("a")
    tally = await house.store.reconcile()
    assert tally
    assert len(tally.made) == 1
    assert (await house.job("a")).ledger
    await house.ledger.session.multi([Put(path, before.data)])
