"""Why a waiting job waits: a stable code for programs and a sentence for people."""

from typing import NamedTuple

from maitred.core.job import Held, Pause, Phase, View
from maitred.core.settings import SECOND, Settings
from maitred.core.stages import STAGE
from maitred.size import show


class Reason(NamedTuple):
    """The first thing that keeps a waiting job from starting."""

    code: str
    text: str


def waiting_for(view: View, settings: Settings) -> Reason | None:
    """Tell what the job waits for; None if it does not wait and is not held.

    Codes, the first that is true: `held`, `paused`, `due`, `stopping`, `no-worker`, `space`, `class`,
    `slots`.
    """
    if view.job.phase not in (Phase.WAITING, Phase.HELD):
        return None
    if view.holds:
        return Reason("held", held_by(view.holds[0]))
    if view.job.phase is Phase.HELD:
        return Reason("held", "it comes back to its place now")
    return _not_yet(view) or _no_room(view, settings)


def _not_yet(view: View) -> Reason | None:
    """Tell why the job could not start on an empty floor."""
    if view.paused:
        return Reason("paused", f"the queue is {paused_by(view.paused)}")
    if view.release is not None and view.release > view.now:
        seconds = -((view.now - view.release) // SECOND)
        return Reason("due", f"{'tried again' if view.job.attempt else 'released'} in {seconds} s")
    if view.job.blocked:
        return Reason("stopping", "its last run is being stopped")
    return None


def _no_room(view: View, settings: Settings) -> Reason:
    if not view.serving:
        return Reason("no-worker", f"no worker serves {_need(view.job.need)} at the moment")
    if lack := _lack_of_space(view, settings):
        return Reason("space", lack)
    if full := _full_level(view, settings):
        name = settings.levels[full - 1].name
        running, limit = view.used[full - 1], view.limits[full - 1]
        return Reason("class", f"{name} limit reached: {running} of {limit} running")
    ahead = (view.position or 1) - 1
    return Reason("slots", f"all slots are busy, {ahead} ahead in line" if ahead else "all slots are busy")


def _need(need: str) -> str:
    return f"the stage {need.removeprefix(STAGE)!r}" if need.startswith(STAGE) else repr(need)


def _lack_of_space(view: View, settings: Settings) -> str | None:
    """Say that the job does not fit into what is left of the queue's space, or stands behind one such."""
    job, free = view.job, view.space_free
    if not job.lacking or free is None:
        return None
    if job.space > free:
        return f"needs {show(job.space)} of space, {show(max(0, free))} of {show(settings.space)} is free"
    if view.free and not _full_level(view, settings):
        return "jobs before it wait for space"
    return None


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


def held_by(held: Held) -> str:
    """Say who holds a job or what it belongs to, and why if they said so: "held by ann: bad disk"."""
    what = "" if held.kind == "job" else f"its {held.kind} is "
    who = f"{what}held by {held.by}" if held.by else f"{what}held"
    return f"{who}: {held.reason}" if held.reason else who


def delay_reason(recent: int | None, per_recent: int, window: int) -> str | None:
    """Say why the queue's policy gave a job its delay; None where the client chose it."""
    if recent is None:
        return None
    minutes = window / (60 * SECOND)
    submissions = "1 submission" if recent == 1 else f"{recent} submissions"
    return f"{submissions} in the last {minutes:g} min × {per_recent / SECOND:g} s"
