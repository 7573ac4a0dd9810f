"""A job as an event tells of it: what is known of it now, put back into the state that it had then.

Events name a job and its new state; all else is read later, when the job may have gone on. Whoever is told of
each step is told each one's own state, on whatever server, however late it is read.
"""

from dataclasses import replace

from maitred.core.events import Changed, Ended, Lowered, Started
from maitred.core.job import Phase, View
from maitred.core.settings import Settings
from maitred.core.stages import STAGE


def as_told(view: View, event: Started | Changed | Lowered | Ended, settings: Settings) -> View:
    """Give the job as it was after the event."""
    match event:
        case Started():
            return as_started(view, event, settings)
        case Lowered():
            running = _as(view, Phase.RUNNING, max(1, view.job.stage))
            return replace(running, granted=event.duration)
        case Changed():
            return _as(view, event.phase, event.stage)
        case Ended():
            return _as(view, Phase.ENDED, view.job.stage, event.code)


def as_started(view: View, event: Started, settings: Settings) -> View:
    """Give the job as it runs since this start; in a queue with stages, what was needed names the stage."""
    name, stages = event.need.removeprefix(STAGE), settings.stages
    running = replace(
        view.job,
        phase=Phase.RUNNING,
        stage=stages.index(name) + 1 if name in stages else max(1, view.job.stage),
        attempt=event.attempt,
        worker=event.worker,
        code="",
        message="",
    )
    return replace(view, job=running, position=None, granted=event.duration, started=event.start)


def _as(view: View, phase: Phase, stage: int, code: str = "") -> View:
    """Give the job in this state; what it says now is of another state, unless it is still in that."""
    job = view.job
    if (job.phase, job.stage, job.code if phase is Phase.ENDED else "") == (phase, stage, code):
        return view
    worker = job.worker if phase is Phase.RUNNING else ""
    attempt = job.attempt if stage else 0
    earlier = replace(
        job, phase=phase, stage=stage, attempt=attempt, code=code, message="", result=b"", worker=worker
    )
    return replace(view, job=earlier, position=None, started=None, granted=None)
