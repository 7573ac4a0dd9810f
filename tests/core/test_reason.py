"""Why a job waits, in words."""

from dataclasses import replace

from maitred.core.job import Job, Pause, Phase, Submitter, View
from maitred.core.reason import Reason, delay_reason, waiting_for
from maitred.core.settings import MINUTE, SECOND

JOB = Job(1, "id", 1, Submitter("user", "1"), "handler:grade", b"", 0)
FIRST = View(
    JOB, position=1, release=0, nonce=1, running_versions=(), now=SECOND, paused=None, serving=1, free=0
)


def test_the_first_thing_that_keeps_a_job_is_told() -> None:
    alone = replace(FIRST, serving=0)
    later = replace(alone, release=SECOND * 5 // 2)
    paused = replace(later, paused=Pause("ann", "new disks", 0))
    assert waiting_for(paused) == Reason("paused", "the queue is paused by ann: new disks")
    assert waiting_for(later) == Reason("due", "released in 2 s")
    assert waiting_for(alone) == Reason("no-worker", "no worker serves 'handler:grade' at the moment")
    assert waiting_for(FIRST) == Reason("slots", "all slots are busy")
    assert waiting_for(replace(FIRST, position=3)) == Reason("slots", "all slots are busy, 2 ahead in line")


def test_a_job_that_does_not_wait_waits_for_nothing() -> None:
    assert waiting_for(replace(FIRST, job=replace(JOB, phase=Phase.RUNNING))) is None


def test_the_policy_says_what_it_counted() -> None:
    assert delay_reason(None, MINUTE, 15 * MINUTE) is None
    assert delay_reason(1, MINUTE, 15 * MINUTE) == "1 submission in the last 15 min × 60 s"
    assert delay_reason(2, MINUTE, 15 * MINUTE) == "2 submissions in the last 15 min × 60 s"
