"""Why a job waits, in words."""

from dataclasses import replace

import pytest

from maitred.core.classes import DurationClass, Limit
from maitred.core.job import Held, Job, Pause, Phase, Submitter, View
from maitred.core.reason import Reason, delay_reason, waiting_for
from maitred.core.settings import MINUTE, SECOND, Settings

PLAIN = Settings()
CLASSES = Settings(
    classes=(
        DurationClass("fast", 3 * SECOND),
        DurationClass("medium", 10 * SECOND, Limit(2)),
        DurationClass("slow", 30 * SECOND, Limit(1)),
    )
)
JOB = Job(1, "id", 1, Submitter("user", "1"), "handler:grade", b"", 0)
FIRST = View(
    JOB, position=1, release=0, nonce=1, running_versions=(), now=SECOND, paused=None, serving=1, free=0
)


def of_class(level: int, used: tuple[int, ...], limits: tuple[int, ...] = (4, 2, 1)) -> View:
    """Give a waiting job of a class on a floor with so many units taken."""
    return replace(FIRST, job=replace(JOB, level=level, elastic=False), used=used, limits=limits)


def test_the_first_thing_that_keeps_a_job_is_told() -> None:
    full = of_class(3, (4, 2, 1))
    alone = replace(full, serving=0)
    stopped = replace(alone, job=replace(alone.job, blocked=True))
    later = replace(stopped, release=SECOND * 5 // 2)
    paused = replace(later, paused=Pause("ann", "new disks", 0))
    held = replace(paused, holds=(Held("job", "id", "ben", "bad disk", 0), Held("profile", "p", "", "", 0)))
    for view, code, text in (
        (held, "held", "held by ben: bad disk"),
        (paused, "paused", "the queue is paused by ann: new disks"),
        (later, "due", "released in 2 s"),
        (stopped, "stopping", "its last run is being stopped"),
        (alone, "no-worker", "no worker serves 'handler:grade' at the moment"),
        (full, "class", "medium limit reached: 2 of 2 running"),
        (FIRST, "slots", "all slots are busy"),
        (replace(FIRST, position=3), "slots", "all slots are busy, 2 ahead in line"),
    ):
        assert waiting_for(view, CLASSES) == Reason(code, text)


@pytest.mark.parametrize(
    ("level", "used", "reason"),
    [
        (3, (1, 1, 1), Reason("class", "slow limit reached: 1 of 1 running")),
        (3, (2, 2, 1), Reason("class", "medium limit reached: 2 of 2 running")),
        (3, (5, 3, 0), Reason("class", "medium limit reached: 3 of 2 running")),
        (2, (4, 1, 1), Reason("slots", "all slots are busy")),
        (2, (4, 2, 1), Reason("class", "medium limit reached: 2 of 2 running")),
        (1, (4, 2, 1), Reason("slots", "all slots are busy")),
    ],
)
def test_of_the_levels_that_a_job_needs_the_first_full_one_is_named(
    level: int, used: tuple[int, ...], reason: Reason
) -> None:
    assert waiting_for(of_class(level, used), CLASSES) == reason


def test_an_elastic_job_waits_for_a_slot_only() -> None:
    elastic = replace(of_class(1, (4, 2, 1)), job=replace(JOB, elastic=True))
    assert waiting_for(elastic, CLASSES) == Reason("slots", "all slots are busy")


def test_a_reader_with_older_settings_names_no_class_that_it_does_not_know() -> None:
    assert waiting_for(of_class(3, (1, 1, 1)), PLAIN) == Reason("slots", "all slots are busy")


@pytest.mark.parametrize(
    ("hold", "text"),
    [
        (Held("job", "id", "ann", "", 0), "held by ann"),
        (Held("batch", "b1", "ann", "wrong files", 0), "its batch is held by ann: wrong files"),
        (Held("submitter", "user.7", "", "", 0), "its submitter is held"),
        (Held("profile", "p", "ann", "", 0), "its profile is held by ann"),
    ],
)
def test_a_hold_says_what_is_held_by_whom_and_why(hold: Held, text: str) -> None:
    for phase in (Phase.WAITING, Phase.HELD):
        assert waiting_for(replace(FIRST, job=replace(JOB, phase=phase), holds=(hold,)), PLAIN) == Reason(
            "held", text
        )


def test_a_job_whose_last_hold_was_taken_away_comes_back() -> None:
    held = replace(FIRST, job=replace(JOB, phase=Phase.HELD))
    assert waiting_for(held, PLAIN) == Reason("held", "it comes back to its place now")


def test_a_job_that_failed_for_now_is_tried_again() -> None:
    backing_off = replace(FIRST, job=replace(JOB, attempt=1, stage=1), release=4 * SECOND)
    assert waiting_for(backing_off, PLAIN) == Reason("due", "tried again in 3 s")


def test_a_stage_that_nobody_serves_is_named() -> None:
    view = replace(FIRST, job=replace(JOB, need="stage:recording"), serving=0)
    assert waiting_for(view, PLAIN) == Reason(
        "no-worker", "no worker serves the stage 'recording' at the moment"
    )


def test_a_job_that_does_not_fit_into_the_space_says_how_much_it_needs() -> None:
    budget = Settings(stages=("provisioning",), space=200_000_000_000)
    lacking = replace(JOB, need="stage:provisioning", lacking=True, space=3_000_000_000)
    tight = replace(FIRST, job=lacking, space_free=1_000_000_000)
    assert waiting_for(tight, budget) == Reason("space", "needs 3 GB of space, 1 GB of 200 GB is free")
    over = replace(tight, space_free=-5)
    assert waiting_for(over, budget) == Reason("space", "needs 3 GB of space, 0 B of 200 GB is free")
    behind = replace(tight, space_free=5_000_000_000, free=1)
    assert waiting_for(behind, budget) == Reason("space", "jobs before it wait for space")
    assert waiting_for(replace(behind, free=0), budget) == Reason("slots", "all slots are busy")
    assert waiting_for(replace(tight, serving=0), budget) == Reason(
        "no-worker", "no worker serves the stage 'provisioning' at the moment"
    )


def test_a_job_that_does_not_wait_waits_for_nothing() -> None:
    assert waiting_for(replace(FIRST, job=replace(JOB, phase=Phase.RUNNING)), PLAIN) is None


def test_the_policy_says_what_it_counted() -> None:
    assert delay_reason(None, MINUTE, 15 * MINUTE) is None
    assert delay_reason(1, MINUTE, 15 * MINUTE) == "1 submission in the last 15 min × 60 s"
    assert delay_reason(2, MINUTE, 15 * MINUTE) == "2 submissions in the last 15 min × 60 s"
