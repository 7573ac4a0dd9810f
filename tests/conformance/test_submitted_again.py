"""Jobs that are submitted again, or let go, while they are held, back off, or are in a batch."""

import pytest

from maitred.core.batch import BatchOrder
from maitred.core.job import Band, Finish, Order, Phase
from maitred.core.settings import SECOND
from tests.conformance.party import NEED, U1, Party


@pytest.fixture
async def batch(party: Party) -> str:
    """An open batch."""
    put = await party.store.create_batch(BatchOrder("", U1, "", b"{}", expanding=False, sealed=False))
    return put.id


async def test_a_deleted_batch_leaves_no_version_of_its_jobs(party: Party, batch: str) -> None:
    for worker in ("w0", "w1"):
        await party.submit("a", batch=batch)
        start = await party.pop()
        assert start
        await party.store.finish(worker, [Finish(start.lease)])
    await party.store.remove_batch(batch)
    assert await party.store.read(["a"]) == [None]


async def test_a_batch_that_is_to_be_sealed_takes_jobs_only_from_the_server_that_expands_it(
    party: Party,
) -> None:
    token = b"t" * 16
    put = await party.store.create_batch(BatchOrder("", U1, "", b"{}", expanding=True, sealed=True))
    await party.store.lock_batch("me", token)
    assert await party.submit("a", batch=put.id) == "sealed"
    assert await party.submit("a", batch=put.id, token=token, only_new=True) == "created"


async def test_attempts_are_counted_anew_after_a_put(party: Party) -> None:
    await party.submit("a")
    start = await party.pop()
    assert start
    await party.store.finish("w0", [Finish(start.lease, "error", "later", transient=True)])
    assert await party.submit("a", body=b"better") == "updated"
    party.clock.now += 3 * SECOND
    again = await party.pop()
    assert again
    assert (again.attempt, again.body) == (1, b"better")


async def test_a_held_bulk_job_comes_back_as_scheduled_if_it_was_submitted_so_meanwhile(party: Party) -> None:
    await party.submit("a", band=Band.BULK)
    await party.store.hold("job", "a", "me", "")
    party.clock.now += SECOND
    assert await party.submit("a", delay=5) == "upgraded"
    assert await party.submit("a", band=Band.BULK) == "updated"
    await party.store.unhold("job", "a")
    [view] = await party.store.read(["a"])
    assert view
    assert (view.job.band, view.job.release) == (Band.SCHEDULED, party.clock.now + 5 * SECOND)
    assert await party.store.check() == []


async def test_a_job_let_go_by_itself_runs_on_while_the_rest_of_its_submitter_returns(party: Party) -> None:
    """Those who come back from a hold of many do so some in each step; one of them may be let go before."""
    ids = [f"j{number:03}" for number in range(900)]
    await party.store.hold("submitter", str(U1), "me", "")
    await party.store.put([Order(id, U1, NEED, b"") for id in ids])
    await party.store.join("w", 1, [NEED])
    while (await party.store.held(0, 1)).total < len(ids):
        await party.store.tick()
    await party.store.leave("w")
    await party.store.unhold("submitter", str(U1))
    await party.store.hold("job", ids[-1], "me", "")
    await party.store.unhold("job", ids[-1])
    await party.store.release(ids[-1])
    assert await party.pops(1) == [ids[-1]]
    while (await party.store.held(0, 1)).total:
        await party.store.tick()
    [view] = await party.store.read([ids[-1]])
    assert view
    assert view.job.phase is Phase.RUNNING
    assert await party.store.check() == []
