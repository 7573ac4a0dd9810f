"""Holds: reasons for which jobs do not go on, of one job and of many."""

from itertools import permutations

import pytest

from maitred.core.job import Band, Order, Phase
from maitred.core.settings import SECOND
from maitred.errors import AlreadyEnded, IllegalMove, NotHeld, UnknownJob
from tests.conformance.ledger import TOKEN, Ledger
from tests.conformance.party import U1, U2, U7

MANY = 350
AT_ONCE = 100


async def test_a_hold_of_a_waiting_job_acts_at_once_and_it_comes_back_to_the_place_it_had(
    ledger: Ledger,
) -> None:
    await ledger.open(slots=0)
    for id, who in (("a", U1), ("b", U2), ("c", U7)):
        await ledger.put(id, who)
        ledger.clock.now += SECOND
    await ledger.hold("job", "b", "look at it first")
    assert (await ledger.held(), await ledger.line()) == (["b"], ["a", "c"])
    assert (await ledger.job("b")).phase is Phase.HELD
    await ledger.unhold("job", "b")
    assert (await ledger.held(), await ledger.line()) == ([], ["a", "b", "c"])


@pytest.mark.parametrize("band", [Band.IMMEDIATE, Band.SCHEDULED, Band.BULK])
async def test_a_held_job_keeps_its_band_release_and_arrival(ledger: Ledger, band: Band) -> None:
    await ledger.open(slots=0)
    await ledger.put("j", band=band, delay=None if band is Band.IMMEDIATE else 30 * SECOND)
    before = await ledger.job("j")
    await ledger.tick(5)
    await ledger.hold("job", "j")
    await ledger.tick(5)
    await ledger.unhold("job", "j")
    after = await ledger.job("j")
    assert (after.band, after.release, after.arrival) == (before.band, before.release, before.arrival)
    assert after.own


async def test_a_hold_of_a_running_job_acts_when_its_stage_ends(ledger: Ledger) -> None:
    await ledger.open()
    await ledger.put("j")
    await ledger.hold("job", "j")
    assert (await ledger.job("j")).phase is Phase.RUNNING
    await ledger.done("j", result=b"data")
    assert await ledger.state("j") == "held"
    assert await ledger.last_success("j") == "estimating"
    await ledger.unhold("job", "j")
    assert ledger.runs["j"][1].need == "stage:provisioning"
    assert ledger.runs["j"][1].data == b"data"


async def test_a_hold_of_a_running_job_that_fails_or_is_completed_is_forgotten(ledger: Ledger) -> None:
    await ledger.open()
    await ledger.put("j")
    await ledger.hold("job", "j")
    await ledger.fail("j")
    assert await ledger.state("j") == "failed"
    await ledger.retry("j")
    assert await ledger.state("j") == "estimating"
    await ledger.through("j", "notify")
    await ledger.hold("job", "j")
    await ledger.done("j")
    assert await ledger.state("j") == "completed"


async def test_a_hold_of_many_is_shown_at_once_and_acts_when_a_place_comes_up(ledger: Ledger) -> None:
    await ledger.open(slots=0)
    await ledger.put("j")
    await ledger.put("k", U2)
    await ledger.hold("submitter", str(U1), "too many mails")
    assert await ledger.line() == ["j", "k"]
    assert [held.reason for held in (await ledger.view("j")).holds] == ["too many mails"]
    await ledger.join("w", 2)
    assert (await ledger.held(), list(ledger.runs)) == (["j"], ["k"])


REASONS = ["job", "batch", "submitter", "profile"]


@pytest.mark.parametrize("order", list(permutations(REASONS))[::5], ids=",".join)
async def test_a_job_goes_on_when_no_reason_is_left(ledger: Ledger, order: tuple[str, ...]) -> None:
    await ledger.open(slots=0)
    batch = await ledger.batch_of("a", "j", profile="p")
    names = {"job": "j", "batch": batch, "submitter": str(U1), "profile": "p"}
    for kind in REASONS:
        await ledger.hold(kind, names[kind], f"{kind} is held")
    await ledger.join("w")
    assert [held.kind for held in (await ledger.view("j")).holds] == REASONS
    assert await ledger.counts(batch) == {"held": 1}
    for kind in order:
        assert (await ledger.state("j"), ledger.runs) == ("held", {})
        await ledger.unhold(kind, names[kind])
    assert await ledger.state("j") == "estimating"


async def test_a_put_of_a_held_key_replaces_its_body_and_nothing_else(ledger: Ledger) -> None:
    await ledger.open(slots=0)
    await ledger.put("j", body=b"old")
    before = await ledger.job("j")
    await ledger.hold("job", "j")
    await ledger.tick(5)
    assert await ledger.put("j", body=b"new") == "updated"
    assert await ledger.held() == ["j"]
    await ledger.unhold("job", "j")
    after = await ledger.job("j")
    assert (after.body, after.version, after.created_at) == (b"new", 1, before.created_at)
    assert (after.release, after.arrival) == (before.release, before.arrival)


async def test_a_put_of_a_job_held_between_stages_keeps_its_stage(ledger: Ledger) -> None:
    await ledger.open()
    await ledger.put("j", body=b"old")
    await ledger.hold("job", "j")
    await ledger.done("j")
    assert await ledger.put("j", body=b"new") == "updated"
    await ledger.unhold("job", "j")
    start = ledger.runs["j"][1]
    assert (start.need, start.body) == ("stage:provisioning", b"new")


async def test_another_priority_of_a_held_job_counts_when_it_comes_back(ledger: Ledger) -> None:
    await ledger.open(slots=0)
    await ledger.put("a")
    await ledger.put("b", U2)
    await ledger.hold("job", "b")
    await ledger.store.prioritise("b", 2)
    await ledger.unhold("job", "b")
    assert await ledger.line() == ["b", "a"]


async def test_a_held_job_can_be_cancelled_and_then_retried_free_of_its_own_hold(ledger: Ledger) -> None:
    await ledger.open(slots=0)
    batch = await ledger.batch_of("a", "j")
    await ledger.hold("job", "j")
    await ledger.store.cancel("j", "")
    assert (await ledger.state("j"), await ledger.held()) == ("failed", [])
    assert await ledger.counts(batch) == {"failed": 1}
    with pytest.raises(NotHeld):
        await ledger.unhold("job", "j")
    await ledger.retry("j")
    assert await ledger.state("j") == "pending"


async def test_a_job_that_many_hold_can_be_cancelled_and_stays_held_when_it_is_retried(
    ledger: Ledger,
) -> None:
    await ledger.open()
    await ledger.hold("submitter", str(U1))
    await ledger.put("j")
    await ledger.store.cancel("j", "")
    assert (await ledger.state("j"), await ledger.held()) == ("failed", [])
    await ledger.retry("j")
    assert await ledger.state("j") == "held"


async def test_a_held_job_can_be_deleted_and_its_batch_keeps_the_name(ledger: Ledger) -> None:
    await ledger.open()
    await ledger.hold("submitter", str(U1))
    batch = await ledger.batch_of("a", "j")
    assert await ledger.held() == ["j"]
    await ledger.store.remove("j")
    assert await ledger.held() == []
    assert await ledger.counts(batch) == {"deleted": 1}
    assert [(row.id, row.state, row.label) for row in await ledger.rows(batch)] == [("j", "deleted", b"j")]


async def test_only_what_is_held_can_be_resumed_and_only_what_goes_on_can_be_held(ledger: Ledger) -> None:
    await ledger.open()
    await ledger.put("j")
    batch = await ledger.batch_of("a")
    with pytest.raises(NotHeld):
        await ledger.unhold("job", "j")
    with pytest.raises(NotHeld):
        await ledger.unhold("batch", batch)
    with pytest.raises(UnknownJob):
        await ledger.hold("job", "nobody")
    await ledger.complete("j")
    with pytest.raises(AlreadyEnded):
        await ledger.hold("job", "j")


async def test_a_job_that_a_hold_of_many_holds_is_not_resumed_by_itself(ledger: Ledger) -> None:
    await ledger.open()
    await ledger.hold("submitter", str(U1))
    await ledger.put("j")
    with pytest.raises(NotHeld):
        await ledger.unhold("job", "j")
    assert await ledger.state("j") == "held"


async def hold_many(ledger: Ledger) -> None:
    """Let one hold keep more jobs than come back in one step."""
    await ledger.open(slots=0)
    await ledger.hold("submitter", str(U1))
    await ledger.store.put([Order(f"j{n}", U1, "stage:estimating", b"") for n in range(MANY)])
    await ledger.join("w", 1)
    await ledger.tick()
    assert len(await ledger.held()) == MANY


async def test_many_held_jobs_come_back_some_in_each_step(ledger: Ledger) -> None:
    await hold_many(ledger)
    await ledger.unhold("submitter", str(U1))
    left = len(await ledger.held())
    assert MANY - AT_ONCE <= left < MANY
    while left:
        moment = await ledger.store.tick()
        before, left = left, len(await ledger.held())
        assert before - left <= AT_ONCE
        assert not left or moment.next_at == ledger.clock.now
    assert len(await ledger.line()) + len(ledger.runs) == MANY


async def test_a_hold_that_is_renewed_while_its_jobs_come_back_keeps_the_rest(ledger: Ledger) -> None:
    await hold_many(ledger)
    await ledger.unhold("submitter", str(U1))
    await ledger.hold("submitter", str(U1))
    left = await ledger.held()
    assert left
    await ledger.tick()
    assert await ledger.held() == left
    await ledger.unhold("submitter", str(U1))
    for _ in range(4):
        await ledger.tick()
    assert await ledger.held() == []


async def test_a_job_that_is_resumed_while_others_come_back_comes_back_once(ledger: Ledger) -> None:
    await hold_many(ledger)
    last = (await ledger.held())[-1]
    await ledger.hold("job", last)
    await ledger.unhold("submitter", str(U1))
    assert last in await ledger.held()
    await ledger.unhold("job", last)
    assert last in await ledger.line()
    for _ in range(4):
        await ledger.tick()
    assert await ledger.held() == []
    assert len(await ledger.line()) + len(ledger.runs) == MANY


async def test_a_job_that_expires_while_it_is_held_expires_when_it_comes_back(ledger: Ledger) -> None:
    await ledger.open()
    await ledger.hold("submitter", str(U1))
    await ledger.put("j", expires_at=ledger.clock.now + 10 * SECOND)
    await ledger.tick(20)
    assert await ledger.state("j") == "held"
    await ledger.unhold("submitter", str(U1))
    assert (await ledger.job("j")).code == "expired"


async def test_a_job_that_is_handed_back_lost_or_backs_off_is_held_instead(ledger: Ledger) -> None:
    await ledger.open()
    for id in ("back", "off"):
        await ledger.put(id)
    await ledger.hold("submitter", str(U1))
    await ledger.store.hand_back("w", [ledger.lease("back")])
    await ledger.fail("off", transient=True)
    assert sorted(await ledger.held()) == ["back", "off"]
    await ledger.unhold("submitter", str(U1))
    assert await ledger.line() == ["off"]
    assert (await ledger.job("off")).release > ledger.clock.now


async def test_a_held_batch_is_neither_expanded_nor_worked_on(ledger: Ledger) -> None:
    await ledger.open()
    pending = await ledger.batch_of("a", expanding=True)
    working = await ledger.batch_of("b", "j")
    for batch in (pending, working):
        await ledger.hold("batch", batch)
        assert (await ledger.batch(batch)).state == "held"
    assert await ledger.store.lock_batch("clerk", TOKEN) is None
    await ledger.done("j")
    assert await ledger.state("j") == "held"
    await ledger.unhold("batch", pending)
    await ledger.unhold("batch", working)
    assert (await ledger.batch(pending)).state == "pending"
    assert (await ledger.batch(working)).state == "processing"
    assert await ledger.state("j") == "provisioning"
    assert await ledger.store.lock_batch("clerk", TOKEN)


async def test_a_batch_whose_last_job_ends_while_it_is_held_is_reported_when_it_is_resumed(
    ledger: Ledger,
) -> None:
    await ledger.open()
    batch = await ledger.batch_of("a", "j", sealed=True)
    await ledger.through("j", "notify")
    await ledger.hold("batch", batch)
    await ledger.done("j")
    assert (await ledger.batch(batch)).state == "held"
    assert await ledger.store.lock_batch("clerk", TOKEN) is None
    await ledger.unhold("batch", batch)
    assert (await ledger.report(batch))[0] == "completed"
    with pytest.raises(IllegalMove):
        await ledger.hold("batch", batch)


async def test_holds_are_shown_with_the_queue(ledger: Ledger) -> None:
    await ledger.open()
    await ledger.hold("profile", "p", "why not")
    [held] = (await ledger.store.status()).holds
    assert (held.kind, held.name, held.by, held.reason, held.at) == (
        "profile",
        "p",
        "ann",
        "why not",
        ledger.clock.now,
    )
