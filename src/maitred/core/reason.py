"""Why a waiting job waits: a stable code for programs and a sentence for people."""

from typing import NamedTuple

from maitred.core.job import Pause, Phase, View
from maitred.core.settings import SECOND


class Reason(NamedTuple):
    """The first thing that keeps a waiting job from starting."""

    code: str
    text: str


def waiting_for(view: View) -> Reason | None:
    """Tell what the job waits for; None if it does not wait.

    Codes: `paused`, `due`, `no-worker`, `slots`.
    """
    if view.job.phase is not Phase.WAITING:
        return None
    if view.paused:
        return Reason("paused", f"the queue is {paused_by(view.paused)}")
    if view.release is not None and view.release > view.now:
        seconds = -((view.now - view.release) // SECOND)
        return Reason("due", f"released in {seconds} s")
    if not view.serving:
        return Reason("no-worker", f"no worker serves {view.job.need!r} at the moment")
    ahead = (view.position or 1) - 1
    return Reason("slots", f"all slots are busy, {ahead} ahead in line" if ahead else "all slots are busy")


def paused_by(pause: Pause) -> str:
    """Say who paused a queue, and why if they said so: "paused by ann: new disks"."""
    who = f"paused by {pause.by}" if pause.by else "paused"
    return f"{who}: {pause.reason}" if pause.reason else who


def delay_reason(recent: int | None, per_recent: int, window: int) -> str | None:
    """Say why the queue's policy gave a job its delay; None where the client chose it."""
    if recent is None:
        return None
    minutes = window / (60 * SECOND)
    submissions = "1 submission" if recent == 1 else f"{recent} submissions"
    return f"{submissions} in the last {minutes:g} min × {per_recent / SECOND:g} s"
