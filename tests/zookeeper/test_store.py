"""B1 to B26 on a queue whose ledger is a tree: the line in memory and on Valkey, in both layouts."""

from maitred.core.job import Phase
from maitred.core.stages import INGEST
from tests.zookeeper.house import House, finish
from tests.zookeeper.party import entries


async def test_b6_a_new_job_is_pending_in_the_tree_and_has_a_place_in_line(house: House) -> None:
    [put] = await house.put("a")
    assert (put.outcome, put.version) == ("created", 1)
    entry = await house.entry("a")
    assert (entry.state, entry.last, entry.retries, entry.priority) == ("pending", None, 0, 5)
    assert await entries(house.ledger, entry.jid) == [f"pending/05-{entry.jid}"]
    assert (await house.job("a")).phase is Phase.WAITING


async def test_b10_through_all_stages(house: House) -> None:
    bid = await house.batch()
    await house.put("a", batch=bid)
    await house.store.seal_batch(bid)
    assert await house.work() == [f"a@{stage}" for stage in INGEST]
    entry = await house.entry("a")
    assert (entry.state, entry.last) == ("completed", "notify")
    job = await house.job("a")
    assert (job.state(INGEST), job.result) == ("completed", b'"stage:notify"')
    batch = await house.store.batch(bid)
    assert batch
    assert (batch.state, batch.counts["completed"]) == ("reporting", 1)
    assert await house.ledger.session.stat(house.tree.bridge.lock(entry.jid)) is None


async def test_a_worker_that_serves_one_stage_hands_the_job_over(house: House) -> None:
    await house.put("a")
    [start] = (await house.store.join("one", 1, ["stage:estimating"])).starts
    await house.store.join("two", 1, ["stage:provisioning"])
    shift = await house.store.finish("one", [finish(start)])
    assert not shift.starts
    [carried] = await house.store.park("two", 1)
    assert (carried.need, carried.data) == ("stage:provisioning", b'"stage:estimating"')  # type: ignore[union-attr]
    assert await house.states("a") == ("provisioning", "provisioning")
