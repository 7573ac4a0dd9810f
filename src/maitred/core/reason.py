"""Why a waiting job waits: a stable code for programs and a sentence for people."""

from typing import NamedTuple

from maitred.core.job import Pause, Phase, View
from maitred.core.settings import SECOND, Settings


class Reason(NamedTuple):
    """The first thing that keeps a waiting job from starting."""

    code: str
    text: str


def waiting_for(view: View, settings: Settings) -> Reason | None:
    """Tell what the job waits for; None if it does not wait.

    Codes, the first that is true: `paused`, `due`, `stopping`, `no-worker`, `class`, `slots`.
    """
    if view.job.phase is not Phase.WAITING:
        return None
    return _not_yet(view) or _no_room(view, settings)


def _not_yet(view: View) -> Reason | None:
    """Tell why the job could not start on an empty floor."""
    if view.paused:
        return Reason("paused", f"the queue is {paused_by(view.paused)}")
    if view.release is not None and view.release > view.now:
        seconds = -((view.now - view.release) // SECOND)
        return Reason("due", f"released in {seconds} s")
    if view.job.blocked:
        return Reason("stopping", "its last run is being stopped")
    return None


def _no_room(view: View, settings: Settings) -> Reason:
    if not view.serving:
        return Reason("no-worker", f"no worker serves {view.job.need!r} at the moment")
    if full := _full_level(view, settings):
        name = settings.levels[full - 1].name
        running, limit = view.used[full - 1], view.limits[full - 1]
        return Reason("class", f"{name} limit reached: {running} of {limit} running")
    ahead = (view.position or 1) - 1
    return Reason("slots", f"all slots are busy, {ahead} ahead in line" if ahead else "all slots are busy")


def _full_level(view: View, settings: Settings) -> int | None:
    """Give the first level above the slots that the job needs and that has no unit free."""
    for level in range(2, min(view.job.level, len(view.limits), len(settings.levels)) + 1):
        if view.used[level - 1] >= view.limits[level - 1]:
            return level
    return None


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
