"""A job of the tree as the line takes it in: what `restore` of a store is given."""

from typing import Any

from maitred.core.ids import job_id
from maitred.core.job import COMMAND, Band, Held, Job, Phase
from maitred.core.settings import Settings
from maitred.core.stages import COMPLETED, FAILED, HELD
from maitred.store.zookeeper.payloads import pack
from maitred.store.zookeeper.records import JobEntry
from maitred.store.zookeeper.tree import DELETED, JID

_PHASES = {HELD: Phase.HELD, FAILED: Phase.ENDED, COMPLETED: Phase.ENDED, DELETED: Phase.ENDED}
FOREIGN = "error"
_NO_ARGUMENTS = frozenset({"submitter", "profile_name", "batch_id", "run", "metadata"})


def job_of(entry: JobEntry, settings: Settings) -> Job:
    """Give a job as the tree has it; one that runs there waits here, at its stage.

    A job that another program made has no id of ours: its id is that of its name in the tree.
    """
    place = entry.standing
    phase = _PHASES.get(entry.state, Phase.WAITING)
    need = (
        settings.need(min(place.stage or 1, len(settings.stages)))
        if settings.staged
        else place.need or COMMAND
    )
    own = next((each for each in place.holds if each.kind == "job"), None)
    id = place.id or job_id(place.key or entry.jid)
    return Job(
        record=0,
        id=id,
        version=place.version,
        submitter=entry.submitter,
        need=need,
        body=entry.body if place.id else _foreign_body(entry),
        created_at=place.created_at or entry.modified_at,
        band=Band(place.band),
        priority=min(99, max(0, entry.priority)),
        level=min(place.level, len(settings.levels)),
        elastic=place.elastic,
        duration=place.duration,
        phase=phase,
        stage=place.stage,
        attempt=place.attempt,
        retries=entry.retries,
        release=place.release,
        arrival=place.arrival or int(entry.jid[len(JID) :]),
        expires_at=place.expires_at,
        ended_at=entry.modified_at if phase is Phase.ENDED else 0,
        code=(place.code or FOREIGN) if entry.state == FAILED else "",
        message=place.message,
        result=place.data if entry.state == COMPLETED else b"",
        batch=entry.batch,
        profile=entry.profile,
        exempt=place.exempt,
        space=entry.space,
        data=b"" if entry.state == COMPLETED else place.data,
        identifiers=entry.identifiers,
        hold=Held("job", id, own.by, own.reason, own.at) if own else None,
        ledger=entry.jid,
        status=entry.mark,
        callback=place.response_url is not None,
        abandon=place.abandon,
    )


def _foreign_body(entry: JobEntry) -> bytes:
    """Give the body of a job that another program made: what its configuration says are its arguments."""
    args: dict[str, Any] = {
        name: value
        for name, value in entry.configuration.items()
        if value is not None and name not in _NO_ARGUMENTS
    }
    run = entry.configuration.get("run") or {"args": args}
    return pack({"key": entry.standing.key or entry.jid, "run": run})
