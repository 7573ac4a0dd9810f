"""Jobs that are given up when nobody has watched them for a time."""

from typing import Any

from maitred.core.job import Finish, Order, Phase, Stop
from maitred.core.settings import SECOND
from tests.conformance.ledger import TOKEN, Ledger
from tests.conformance.party import U1

AFTER = 10 * SECOND


async def open_with_one_stage(ledger: Ledger, **settings: Any) -> None:
    await ledger.open(stages=("one",), **settings)


async def test_a_waiting_job_that_nobody_watches_is_cancelled_in_time(ledger: Ledger) -> None:
    await open_with_one_stage(ledger, slots=0)
    await ledger.put("j", abandon=AFTER)
    moment = await ledger.store.tick()
    assert moment.next_at == ledger.clock.now + AFTER
    await ledger.tick(9.999)
    assert await ledger.state("j") == "pending"
    await ledger.tick(0.001)
    job = await ledger.job("j")
    assert (job.phase, job.code, job.message) == (Phase.ENDED, "abandoned", "nobody watched it for 10 s")
    assert await ledger.line() == []


async def test_whoever_watches_keeps_it(ledger: Ledger) -> None:
    await open_with_one_stage(ledger, slots=0)
    await ledger.put("j", abandon=AFTER)
    await ledger.put("k", abandon=AFTER)
    for _ in range(4):
        await ledger.tick(6)
        await ledger.store.attend(["j", "unknown"])
    assert await ledger.state("j") == "pending"
    assert await ledger.state("k") == "failed"
    await ledger.tick(10)
    assert await ledger.state("j") == "failed"


async def test_a_running_job_is_stopped_and_holds_its_slot_until_that_is_confirmed(ledger: Ledger) -> None:
    await open_with_one_stage(ledger, slots=1)
    await ledger.put("j", abandon=AFTER)
    lease = ledger.lease("j")
    await ledger.put("next")
    await ledger.tick(10)
    job = await ledger.job("j")
    assert (job.code, [run.code for run in job.timeline]) == ("abandoned", ["abandoned"])
    assert "next" not in ledger.runs
    shift = await ledger.store.renew("w", [lease])
    assert shift.lost == [lease]
    await ledger.store.finish("w", [Finish(lease, "cancelled")])
    assert [view.job.id for view in await ledger.store.running()] == ["next"]
    assert (await ledger.job("j")).code == "abandoned"


async def test_the_worker_is_told_to_stop(ledger: Ledger) -> None:
    await open_with_one_stage(ledger, slots=1)
    await ledger.put("j", abandon=AFTER)
    lease = ledger.lease("j")
    ledger.clock.now += AFTER
    await ledger.store.tick()
    assert Stop(lease, "cancelled") in await ledger.store.park("w", 1)


async def test_a_held_job_is_given_up_too(ledger: Ledger) -> None:
    await open_with_one_stage(ledger, slots=0)
    await ledger.put("j", abandon=AFTER)
    await ledger.hold("job", "j")
    await ledger.tick(10)
    assert (await ledger.job("j")).code == "abandoned"
    assert await ledger.held() == []


async def test_an_interactive_job_is_given_up_and_may_be_attended(ledger: Ledger) -> None:
    await open_with_one_stage(ledger, interactive_per_submitter=2)
    for id in ("watched", "left"):
        admission = await ledger.store.admit(Order(id, U1, "stage:one", b"", abandon=AFTER))
        assert not admission.denied
    await ledger.tick(6)
    await ledger.store.attend(["watched"])
    await ledger.tick(6)
    assert (await ledger.job("watched")).phase is Phase.RUNNING
    assert (await ledger.job("left")).code == "abandoned"
    await ledger.tick(4)
    assert (await ledger.job("watched")).code == "abandoned"


async def test_a_put_says_anew_whether_and_when(ledger: Ledger) -> None:
    await open_with_one_stage(ledger, slots=0)
    await ledger.put("later", abandon=AFTER)
    await ledger.put("never", abandon=AFTER)
    await ledger.tick(6)
    await ledger.put("later", abandon=AFTER)
    await ledger.put("never")
    await ledger.tick(6)
    assert await ledger.state("later") == "pending"
    await ledger.tick(4)
    assert await ledger.state("later") == "failed"
    assert await ledger.state("never") == "pending"


async def test_a_retry_counts_from_then_and_an_ended_job_is_left_alone(ledger: Ledger) -> None:
    await open_with_one_stage(ledger)
    await ledger.put("j", abandon=AFTER)
    await ledger.fail("j")
    await ledger.tick(11)
    assert (await ledger.job("j")).code == "error"
    await ledger.retry("j")
    await ledger.tick(9)
    assert (await ledger.job("j")).phase is Phase.RUNNING
    await ledger.tick(1)
    assert (await ledger.job("j")).code == "abandoned"


async def test_many_are_given_up_step_by_step(ledger: Ledger) -> None:
    await open_with_one_stage(ledger, slots=0)
    orders = [Order(f"j{n}", U1, "stage:one", b"", abandon=AFTER) for n in range(250)]
    await ledger.store.put(orders)
    ledger.clock.now += AFTER
    waiting = []
    for _ in range(3):
        moment = await ledger.store.tick()
        waiting.append((await ledger.store.status()).waiting)
        if waiting[-1]:
            assert moment.next_at is not None
            assert moment.next_at <= moment.now
    assert waiting == [150, 50, 0]


async def test_its_submitter_is_told_that_it_was_given_up(ledger: Ledger) -> None:
    await open_with_one_stage(ledger, slots=0)
    await ledger.put("j", abandon=AFTER, callback=True)
    await ledger.tick(10)
    [errand] = await ledger.store.lock_notices("server", TOKEN, 9)
    assert (errand.notice.kind, errand.notice.code) == ("ended", "abandoned")
