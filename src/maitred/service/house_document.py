"""The house as operators see it: queues, running jobs, submitters and workers as documents."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from maitred.config.values import show_limit
from maitred.core.classes import DurationClass, limits
from maitred.core.invariants import Violation
from maitred.core.job import Held, Pause, Submitter, View
from maitred.core.settings import Settings
from maitred.service.document import Document, class_name, granted, hold_document, submitter_document
from maitred.service.moment import iso, seconds
from maitred.store.port import Status, SubmitterView, WorkerView
from maitred.wire import decode_body, decode_json

_SANDBOX = ("memory", "processes", "file_size", "open_files", "disk", "cpu", "network")
_DURATIONS = ("per_recent", "window", "time_limit", "lease", "grace", "kill_after", "retention", "max_delay")


def queue_document(name: str, status: Status, waits: Document | None = None) -> Document:
    """Give a queue's settings, counts and workers in sum, and the waits where somebody measures them."""
    return {
        "name": name,
        "settings": settings_document(status.settings),
        "counts": status.counts,
        "waiting": status.waiting,
        "running": _running(status),
        "slots": slots_of(status),
        "free": status.free,
        "classes": classes_of(status),
        "paused": status.paused is not None,
        "pause": _pause(status.paused),
        "held": {
            "submitters": [hold_document(hold) for hold in status.holds if hold.kind == "submitter"],
            "profiles": [hold_document(hold) for hold in status.holds if hold.kind == "profile"],
        },
        "waits": waits,
        "now": iso(status.now),
    }


def slots_of(status: Status) -> int:
    """Count the slots of the workers that take jobs."""
    return sum(worker.slots for worker in status.workers if not worker.draining)


def _running(status: Status) -> int:
    return sum(worker.busy for worker in status.workers)


def classes_of(status: Status) -> list[Document]:
    """Give each class with the units of its level; a job holds one of its own and of each shorter one."""
    levels = status.settings.levels
    most = status.limits or limits(levels, slots_of(status))
    used = (*(status.used or (_running(status), *(0 for _ in levels[1:]))), 0)
    return [
        {
            "name": each.name,
            "cap": seconds(each.cap),
            "limit": most[index],
            "running": used[index] - used[index + 1],
            "used": used[index],
        }
        for index, each in enumerate(levels)
    ]


def settings_document(settings: Settings) -> Document:
    """Give a queue's settings, durations in seconds."""
    plain: dict[str, Any] = asdict(settings)
    plain["classes"] = [_class_setting(each) for each in settings.classes]
    plain["interactive"] = {
        "idle": seconds(plain.pop("interactive_idle")),
        "cap": seconds(plain.pop("interactive_cap")),
        "per_submitter": plain.pop("interactive_per_submitter"),
    }
    sandbox = {name: plain.pop(f"sandbox_{name}") for name in _SANDBOX}
    plain["sandbox"] = {**sandbox, "cpu": seconds(sandbox["cpu"]) if sandbox["cpu"] else None}
    for name in _DURATIONS:
        plain[name] = seconds(plain[name])
    plain |= _ledger(settings)
    del plain["most_backoff"]
    plain["output"], plain["artifacts"] = plain.pop("output_limit"), plain.pop("artifact_limit")
    policy = {"per_recent": plain.pop("per_recent"), "window": plain.pop("window")}
    waiting = {"total": plain.pop("max_total"), "per_submitter": plain.pop("max_per_submitter")}
    return {**plain, "delay": policy if settings.per_recent else None, "max_waiting": waiting}


def _ledger(settings: Settings) -> Document:
    """Give the stages and what belongs to them; null is no budget, any profile, and no ledger elsewhere."""
    return {
        "stages": list(settings.stages),
        "space": settings.space or None,
        "profiles": list(settings.profiles) or None,
        "backoff": {"first": seconds(settings.backoff), "most": seconds(settings.most_backoff)},
        "ledger": settings.ledger or None,
        "layout": settings.layout if settings.ledger else None,
    }


def _class_setting(each: DurationClass) -> Document:
    limit = None if each.limit is None else show_limit(each.limit)
    return {"name": each.name, "cap": seconds(each.cap), "limit": limit}


def _pause(pause: Pause | None) -> Document | None:
    if pause is None:
        return None
    return {"by": pause.by, "reason": pause.reason or None, "at": iso(pause.at)}


def running_document(view: View, settings: Settings) -> Document:
    """Give a running job: since when, where, and for how long it may."""
    job = view.job
    started = view.now if view.started is None else view.started
    return {
        "id": job.id,
        "key": decode_body(job.body)["key"],
        "version": job.version,
        "attempt": job.attempt,
        "submitter": submitter_document(job),
        "class": class_name(view.holding or job.level, settings),
        "elastic": job.elastic,
        "duration": seconds(granted(view, settings)),
        "elapsed": seconds(max(0, view.now - started)),
        "started_at": iso(started),
        "worker": job.worker,
    }


def profile_document(name: str, holds: Sequence[Held]) -> Document:
    """Give a profile, and what holds it."""
    found = _hold_of("profile", name, holds)
    return {"name": name, "held": found is not None, "hold": found and hold_document(found)}


def _hold_of(kind: str, name: str, holds: Sequence[Held]) -> Held | None:
    return next((hold for hold in holds if (hold.kind, hold.name) == (kind, name)), None)


def line_of_submitter(submitter: Submitter, view: SubmitterView, status: Status) -> Document:
    """Give what a submitter has in line, the delay that its next job would get, and whether it is held."""
    return {
        "jobs": view.jobs,
        "places": [{"nonce": nonce, "release_at": iso(release)} for nonce, release in view.places],
        "recent": view.recent,
        "next_delay": seconds(view.recent * status.settings.per_recent),
        "held": _hold_of("submitter", str(submitter), status.holds) is not None,
    }


def violation_document(violation: Violation) -> Document:
    """Give a broken rule; a damaged store may hold text that is none, which is shown escaped."""
    text = violation.text.encode(errors="backslashreplace").decode()
    return {"code": violation.code, "text": text, "repaired": violation.repaired}


def worker_document(worker: WorkerView, settings: Settings) -> Document:
    """Give a worker; it was last seen when its lease began."""
    return {
        "name": worker.name,
        "slots": worker.slots,
        "busy": worker.busy,
        "draining": worker.draining,
        "serves": list(worker.serves),
        "sandbox": _sandbox_of(worker),
        "last_seen": iso(worker.lease_end - settings.lease),
    }


def _sandbox_of(worker: WorkerView) -> list[str]:
    """Name what a worker enforces, as it says itself; one that says nothing enforces nothing."""
    return list(decode_json(worker.about)["sandbox"]) if worker.about else []
