"""A job as callers see it: the record and its place, turned into the document of the contract.

Every field that the contract names is there; what cannot be said is null, or empty.
"""

from typing import Any

from maitred.core.estimate import Estimate
from maitred.core.job import Band, Held, Job, Phase, Run, Submitter, View
from maitred.core.reason import delay_reason, waiting_for
from maitred.core.settings import Settings
from maitred.core.stages import last_successful, name_of
from maitred.service.moment import iso, iso_or_none, seconds
from maitred.wire import decode_body, decode_json

Document = dict[str, Any]


def job_document(queue: str, view: View, settings: Settings, estimate: Estimate | None = None) -> Document:
    """Give the document of a job, with its estimate where somebody made one."""
    job = view.job
    return {
        "id": job.id,
        "queue": queue,
        **_sent(job, settings),
        "version": job.version,
        "running_versions": list(view.running_versions),
        **_state(job, settings),
        "band": job.band.name.lower(),
        "created_at": iso(job.created_at),
        **_place(view, settings),
        "estimate": estimate and estimate_document(estimate),
        "duration": _duration(view, settings),
        "progress": progress_document(job.progress),
        "holds": [hold_document(hold) for hold in view.holds],
        "space_needed": job.space or None,
        "identifiers": decode_json(job.identifiers) if job.identifiers else {},
        "ledger_id": job.ledger or None,
        "result": decode_json(job.result) if job.result else None,
        "artifacts": [
            {"name": each.name, "content_type": each.media_type, "size": each.size} for each in job.artifacts
        ],
        "timeline": _timeline(job, settings, view.started),
    }


def _sent(job: Job, settings: Settings) -> Document:
    """Give what the caller sent, with files named but not included."""
    config = decode_body(job.body)
    run = config["run"]
    if "files" in run:
        run["files"] = sorted(run["files"])
    return {
        "key": config["key"],
        "submitter": submitter_document(job),
        "response_url": config.get("response_url"),
        "delay": seconds(job.delay),
        "priority": job.priority,
        "immediate": job.band is Band.IMMEDIATE,
        "bulk": job.band is Band.BULK,
        "class": _class(job, settings),
        "batch": job.batch or None,
        "profile_name": job.profile or None,
        "run": run,
        "metadata": config.get("metadata", {}),
        "expires_at": iso_or_none(job.expires_at),
        "abandon_after": seconds(job.abandon) if job.abandon else None,
    }


def _class(job: Job, settings: Settings) -> str | None:
    """Name the class that was asked for, or that holds the duration."""
    asked = not job.elastic and job.band is not Band.INTERACTIVE
    return class_name(job.level, settings) if asked else None


def class_name(level: int, settings: Settings) -> str | None:
    """Name a class; None for the class of an ended job that its queue no longer has."""
    return settings.levels[level - 1].name if level <= len(settings.levels) else None


def granted(view: View, settings: Settings) -> int:
    """Give how long a running job may take, in all, and a waiting one will be granted at most."""
    job = view.job
    if view.granted is not None:
        return view.granted
    level = len(settings.levels) if job.elastic else min(job.level, len(settings.levels))
    return job.duration or settings.levels[level - 1].cap


def _duration(view: View, settings: Settings) -> float | None:
    """Give what is granted, or asked for, or what an ended job had.

    What an elastic job had in the end is not kept, and one that never started had nothing.
    """
    job = view.job
    if job.phase is Phase.ENDED and (job.elastic or not job.stage):
        return None
    return seconds(granted(view, settings))


def hold_document(hold: Held) -> Document:
    """Give a hold; a submitter is named as callers write it, `user:7`."""
    name = hold.name
    if hold.kind == "submitter":
        who = Submitter.read(name)
        name = f"{who.type}:{who.id}"
    return {
        "kind": hold.kind,
        "name": name,
        "by": hold.by,
        "reason": hold.reason or None,
        "at": iso(hold.at),
    }


def submitter_document(job: Job) -> Document:
    """Give whom the job belongs to."""
    return {"type": job.submitter.type, "id": job.submitter.id}


def progress_document(progress: bytes) -> Document | None:
    """Give how far a run says that it is, in its worker's words; None where it says nothing."""
    return decode_json(progress) if progress else None


def _state(job: Job, settings: Settings) -> Document:
    stages = settings.stages
    state = job.state(stages)
    return {
        "state": state,
        "phase": job.phase.value if job.phase in (Phase.WAITING, Phase.RUNNING) else None,
        "stage": name_of(stages, job.stage),
        "code": job.code or None,
        "message": job.message or None,
        "attempt": job.attempt,
        "worker": job.worker or None,
        "last_successful_status": last_successful(stages, job.stage, state),
        "retry_count": job.retries,
    }


def state_document(view: View, settings: Settings) -> Document:
    """Give what watchers of a job are told when its state changes."""
    state = _state(view.job, settings)
    return {
        "state": state["state"],
        "phase": state["phase"],
        "stage": state["stage"],
        "version": view.job.version,
        "attempt": state["attempt"],
        "worker": state["worker"],
        "code": state["code"],
        "message": state["message"],
        "duration": _duration(view, settings),
        "holds": [hold_document(hold) for hold in view.holds],
    }


def place_document(view: View, settings: Settings, estimate: Estimate | None) -> Document:
    """Give what watchers of a waiting job are told when its place changes."""
    place = _place(view, settings)
    return {
        "position": place["position"],
        "estimate": estimate and estimate_document(estimate),
        "waiting_for": place["waiting_for"],
    }


def result_document(view: View) -> Document:
    """Give how a job ended."""
    job = view.job
    return {
        "result": decode_json(job.result) if job.result else None,
        "code": job.code or None,
        "message": job.message or None,
    }


def estimate_document(estimate: Estimate) -> Document:
    """Give an estimate as times; null where nothing can be said."""
    return {
        "expected": iso_or_none(estimate.expected),
        "low": iso_or_none(estimate.low),
        "high": iso_or_none(estimate.high),
        "at_latest": iso_or_none(estimate.at_latest),
        "as_of": iso(estimate.as_of),
    }


def _place(view: View, settings: Settings) -> Document:
    reason = waiting_for(view, settings)
    return {
        "release_at": iso_or_none(view.release),
        "nonce": view.nonce,
        "delay_reason": delay_reason(view.job.recent, settings.per_recent, settings.window),
        "position": view.position,
        "waiting_for": reason and {"code": reason.code, "text": reason.text},
    }


def _timeline(job: Job, settings: Settings, started: int | None) -> list[Document]:
    entries = [_entry(run, settings, iso(run.end)) for run in job.timeline]
    if started is not None:
        now = Run(job.stage, job.version, job.attempt, job.worker, started, 0, "")
        entries.append(_entry(now, settings, None))
    return entries


def _entry(run: Run, settings: Settings, end: str | None) -> Document:
    return {
        "stage": name_of(settings.stages, run.stage) or f"stage {run.stage}",
        "version": run.version,
        "attempt": run.attempt,
        "worker": run.worker,
        "start": iso(run.start),
        "end": end,
        "code": run.code or None,
    }
