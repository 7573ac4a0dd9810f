"""The delay policy: whoever submitted much a short while ago waits a little longer."""

import pytest

from maitred.core.delay import Delay, Recent
from maitred.core.job import Band, Order, Submitter
from maitred.core.settings import MINUTE, SECOND, Settings

POLICY = Settings(per_recent=MINUTE, window=15 * MINUTE)
ADA, BOB = Submitter("user", "ada"), Submitter("user", "bob")


def order(who: Submitter = ADA, band: Band = Band.SCHEDULED, delay: int | None = None) -> Order:
    return Order("id", who, "command", b"", band=band, delay=delay)


@pytest.fixture
def recent() -> Recent:
    """Ada has submitted twice: now, and a minute later."""
    recent = Recent()
    recent.note(order(), POLICY, 0)
    recent.note(order(), POLICY, MINUTE)
    return recent


def test_each_recent_submission_adds_a_step(recent: Recent) -> None:
    assert recent.delay(order(), POLICY, 2 * MINUTE) == Delay(2 * MINUTE, 2)
    assert recent.delay(order(BOB), POLICY, 2 * MINUTE) == Delay(0, 0)


def test_a_submission_leaves_the_window_when_it_is_as_old_as_that(recent: Recent) -> None:
    assert recent.count(ADA, POLICY, 15 * MINUTE - 1) == 2
    assert recent.count(ADA, POLICY, 15 * MINUTE) == 1


def test_a_delay_that_was_sent_holds_unless_the_policy_is_its_floor(recent: Recent) -> None:
    sent = order(delay=SECOND)
    assert recent.delay(sent, POLICY, 2 * MINUTE) == Delay(SECOND, None)
    assert recent.delay(sent._replace(policy_floor=True), POLICY, 2 * MINUTE) == Delay(2 * MINUTE, 2)


def test_only_scheduled_jobs_are_counted_and_delayed_by_the_policy(recent: Recent) -> None:
    recent.note(order(band=Band.BULK), POLICY, 2 * MINUTE)
    recent.note(order(band=Band.IMMEDIATE), POLICY, 2 * MINUTE)
    assert recent.count(ADA, POLICY, 2 * MINUTE) == 2
    assert recent.delay(order(band=Band.BULK, delay=SECOND), POLICY, 2 * MINUTE) == Delay(SECOND, None)
    assert recent.delay(order(band=Band.IMMEDIATE, delay=SECOND), POLICY, 2 * MINUTE) == Delay(0, None)


def test_without_a_policy_there_is_no_delay_unless_sent() -> None:
    assert Recent().delay(order(), Settings(), 0) == Delay(0, None)
