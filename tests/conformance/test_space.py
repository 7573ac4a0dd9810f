"""Space: a budget that is given in line order, and returned exactly once."""

import pytest

from maitred.core.job import Band, Phase
from maitred.core.settings import SECOND
from tests.conformance.ledger import Ledger
from tests.conformance.party import U1, U2, U7

BUDGET = 10


async def used(ledger: Ledger) -> int:
    return (await ledger.store.status()).space_used


async def estimated(ledger: Ledger, **sizes: int) -> None:
    """Let jobs arrive one after another, and be estimated to need so much."""
    for who, (id, size) in zip((U1, U2, U7, U1, U2), sizes.items(), strict=False):
        await ledger.put(id, who)
        ledger.clock.now += SECOND
        await ledger.done(id, space=size)


async def test_space_is_given_in_line_order_and_the_first_that_does_not_fit_holds_back_the_rest(
    ledger: Ledger,
) -> None:
    await ledger.open(slots=8, space=BUDGET)
    await estimated(ledger, a=6, b=6, c=3)
    assert list(ledger.runs) == ["a"]
    assert await ledger.line() == ["b", "c"]
    assert (await ledger.view("b")).space_free == 4
    await ledger.put("d")
    assert "d" in ledger.runs, "those that need no space yet are not held back"
    await ledger.complete("a")
    assert {"b", "c"} <= ledger.runs.keys()
    assert await used(ledger) == 9


async def test_the_line_decides_who_gets_space_that_comes_free(ledger: Ledger) -> None:
    await ledger.open(slots=8, space=BUDGET)
    await estimated(ledger, a=BUDGET, b=6, c=6)
    await ledger.put("now", U7, band=Band.IMMEDIATE)
    await ledger.done("now", space=6)
    assert await ledger.line() == ["now", "b", "c"]
    await ledger.store.prioritise("c", 2)
    await ledger.complete("a")
    assert list(ledger.runs) == ["now"]
    await ledger.complete("now")
    assert list(ledger.runs) == ["c"]


async def test_a_job_that_needs_more_than_there_is_fails_at_once_and_holds_back_nobody(
    ledger: Ledger,
) -> None:
    await ledger.open(space=BUDGET)
    await ledger.put("j")
    await ledger.done("j", space=BUDGET + 1)
    job = await ledger.job("j")
    assert (await ledger.state("j"), job.code) == ("failed", "space")
    assert "11" in job.message
    assert "10" in job.message
    assert await ledger.last_success("j") == "estimating"
    await estimated(ledger, k=BUDGET)
    assert await ledger.state("k") == "provisioning"
    assert await used(ledger) == BUDGET


async def test_a_job_keeps_its_space_from_provisioning_to_its_end(ledger: Ledger) -> None:
    await ledger.open(space=BUDGET)
    await estimated(ledger, j=6)
    while "j" in ledger.runs:
        assert await used(ledger) == 6
        await ledger.done("j")
    assert await used(ledger) == 0


@pytest.mark.parametrize("how", ["failed", "cancelled", "deleted", "deleted and confirmed"])
async def test_space_is_returned_exactly_once_however_a_job_ends(ledger: Ledger, how: str) -> None:
    await ledger.open(slots=8, space=BUDGET)
    await estimated(ledger, j=6, waits=6)
    if how == "failed":
        await ledger.fail("j")
    elif how == "cancelled":
        await ledger.store.cancel("j", "")
    else:
        await ledger.store.remove("j")
    await ledger.look()
    assert "waits" in ledger.runs
    assert await used(ledger) == 6
    if "j" in ledger.runs:
        await ledger.end("j")
        await ledger.tick()
    assert await used(ledger) == 6


async def test_a_job_whose_worker_is_lost_keeps_its_space_until_its_attempts_are_spent(
    ledger: Ledger,
) -> None:
    await ledger.open(slots=0, space=BUDGET, lease=15 * SECOND, attempts=2)
    await ledger.join("w1")
    await estimated(ledger, j=6)
    await ledger.store.renew("w1", [ledger.lease("j")])
    await ledger.tick(16)
    assert (await ledger.job("j")).phase is Phase.WAITING
    assert await used(ledger) == 6
    await ledger.join("w2")
    assert await used(ledger) == 6
    await ledger.store.renew("w2", [ledger.lease("j")])
    await ledger.tick(16)
    assert (await ledger.job("j")).code == "attempts"
    assert await used(ledger) == 0


async def test_a_job_that_is_handed_back_or_held_between_stages_keeps_its_space(ledger: Ledger) -> None:
    await ledger.open(space=BUDGET)
    await estimated(ledger, j=6)
    await ledger.store.pause("ann", "")
    await ledger.store.hand_back("w", [ledger.lease("j")])
    assert await used(ledger) == 6
    await ledger.hold("job", "j")
    assert await used(ledger) == 6
    await ledger.store.cancel("j", "")
    assert await used(ledger) == 0


async def test_a_retry_past_provisioning_takes_its_space_again_first(ledger: Ledger) -> None:
    await ledger.open(slots=8, space=BUDGET)
    await estimated(ledger, j=6)
    await ledger.through("j", "downloading")
    await ledger.fail("j")
    await estimated(ledger, k=6)
    assert await used(ledger) == 6
    await ledger.retry("j")
    assert (await ledger.state("j"), await ledger.line()) == ("downloading", ["j"])
    await ledger.complete("k")
    assert ledger.runs["j"][1].need == "stage:downloading"
    assert await used(ledger) == 6


async def test_a_retry_before_provisioning_needs_no_space_yet(ledger: Ledger) -> None:
    await ledger.open(slots=8, space=BUDGET)
    await estimated(ledger, k=BUDGET)
    await ledger.put("j")
    await ledger.fail("j")
    await ledger.retry("j")
    assert ledger.runs["j"][1].need == "stage:estimating"


async def test_a_stage_may_correct_what_its_job_needs(ledger: Ledger) -> None:
    await ledger.open(slots=8, space=BUDGET)
    await estimated(ledger, j=8, k=4)
    assert list(ledger.runs) == ["j"]
    await ledger.done("j", space=3)
    assert await used(ledger) == 7
    assert set(ledger.runs) == {"j", "k"}
    await ledger.complete("j")
    await ledger.complete("k")
    assert await used(ledger) == 0


async def test_without_a_budget_nobody_waits_for_space(ledger: Ledger) -> None:
    await ledger.open(slots=8)
    await estimated(ledger, a=10**15, b=10**15)
    assert set(ledger.runs) == {"a", "b"}
    assert await used(ledger) == 0
