"""Up to when a queue can be left alone: nothing falls due or gets old there, and nobody is to be told."""

import pytest

from maitred.core.settings import MINUTE, SECOND
from tests.conformance.ledger import TOKEN, Ledger
from tests.conformance.test_notices import lock, say

LEASE = 60 * MINUTE


async def idle_for(ledger: Ledger) -> int | None:
    """Tick; give for how long there is nothing to do then."""
    moment = await ledger.store.tick()
    return None if moment.idle_until is None else moment.idle_until - moment.now


async def test_an_empty_queue_is_idle_until_something_happens(ledger: Ledger) -> None:
    await ledger.open(slots=0)
    assert await idle_for(ledger) is None


async def test_a_queue_is_idle_until_a_place_is_due_or_a_lease_is_over(ledger: Ledger) -> None:
    await ledger.open(slots=1, lease=LEASE)
    assert await idle_for(ledger) == LEASE
    await ledger.put("j", delay=5 * SECOND)
    assert await idle_for(ledger) == 5 * SECOND


async def test_a_queue_is_idle_until_its_oldest_job_is_forgotten(ledger: Ledger) -> None:
    await ledger.open(stages=("one",), lease=LEASE, retention=100 * SECOND)
    for job in ("older", "newer"):
        await ledger.put(job)
        await ledger.done(job)
        await ledger.tick(10)
    assert await idle_for(ledger) == 80 * SECOND
    await ledger.tick(80)
    assert await idle_for(ledger) == 10 * SECOND
    await ledger.tick(10)
    assert await idle_for(ledger) == LEASE - 110 * SECOND


async def test_a_queue_is_not_idle_while_a_submitter_is_to_be_told_something(ledger: Ledger) -> None:
    await ledger.open(stages=("one",), lease=LEASE, retention=100 * SECOND)
    await ledger.put("j", callback=True)
    assert await idle_for(ledger) == 0
    [errand] = await lock(ledger.store)
    assert await idle_for(ledger) == 0, "whoever has locked it may be gone"
    await say(ledger.store, errand, again_at=ledger.clock.now + 50 * SECOND)
    assert await idle_for(ledger) == 0
    await ledger.tick(50)
    [errand] = await lock(ledger.store)
    await say(ledger.store, errand)
    assert await idle_for(ledger) == LEASE - 50 * SECOND


@pytest.mark.parametrize("send", [False, True])
async def test_a_queue_is_not_idle_while_a_batch_is_to_be_reported_or_sent(
    ledger: Ledger, *, send: bool
) -> None:
    await ledger.open(stages=("one",), lease=LEASE, retention=100 * SECOND)
    batch = await ledger.batch_of("a", "j", sealed=True)
    assert await idle_for(ledger) == 100 * SECOND
    await ledger.done("j")
    assert await idle_for(ledger) == 0
    await ledger.store.lock_batch("server", TOKEN)
    await ledger.store.report_batch(batch, TOKEN, b"{}", send=send)
    if send:
        assert await idle_for(ledger) == 0
        await ledger.store.sent_batch(batch, TOKEN, 50 * SECOND)
        assert await idle_for(ledger) == 0
        await ledger.store.sent_batch(batch, TOKEN, None)
    assert await idle_for(ledger) == 100 * SECOND
