"""Older records of an ingest queue become jobs: each once, in the state that it had."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from maitred.core.ids import job_id
from maitred.core.job import Held, Job, Phase, Submitter
from maitred.core.settings import Settings
from maitred.core.stages import COMPLETED, FAILED, HELD
from maitred.errors import ConfigError
from maitred.store.port import Store
from maitred.store.zookeeper.legacy import Record, Tally, records
from maitred.store.zookeeper.session import Session
from maitred.store.zookeeper.tree import Address
from maitred.wire import encode_json

AT_ONCE = 100
BY = "legacy import"
WHY = "it was held in the older queue"
_FAILED = "it had failed in the older queue"


@dataclass(slots=True)
class Imported:
    """What an import did: how many records of each status there were, how many became jobs, and faults."""

    counts: dict[str, int] = field(default_factory=dict)
    made: int = 0
    known: int = 0
    faults: list[tuple[str, str]] = field(default_factory=list)


async def import_records(store: Store, url: str) -> Imported:
    """Take in all records under `zookeeper://host:port,…/parent`; those that were deleted are only counted.

    Raises `ConfigError` if that is no such address, or the queue has no stages.
    """
    address = Address.read(url)
    settings = (await store.status()).settings
    if not settings.staged:
        raise ConfigError(
            f"queue {store.queue!r} has no stages, and older records are jobs that go through stages"
        )
    session, tally, done = Session(address.hosts), Tally(), Imported()
    await session.open()
    try:
        chunk: list[Job] = []
        async for record in records(session, address.root, tally):
            chunk.append(job_of(record, address.root, settings))
            if len(chunk) == AT_ONCE:
                await _take_in(store, chunk, done)
                chunk = []
        await _take_in(store, chunk, done)
    finally:
        await session.close()
    done.counts, done.faults = tally.counts, tally.faults
    return done


async def _take_in(store: Store, jobs: Sequence[Job], done: Imported) -> None:
    answers = await store.restore(jobs) if jobs else []
    done.made += sum(answer == "made" for answer in answers)
    done.known += sum(answer != "made" for answer in answers)


def job_of(record: Record, parent: str, settings: Settings) -> Job:
    """Give the job that a record becomes; its key is the record's path, so that it is made once."""
    key = f"{parent.strip('/')}/{record.node}"
    id, stages = job_id(key), settings.stages
    stage = {FAILED: min(2, len(stages)), COMPLETED: len(stages), stages[0]: 1}.get(record.state, 0)
    stage = 1 if record.status == "Consumed" else stage
    ended = record.state in (FAILED, COMPLETED)
    held = Held("job", id, BY, WHY, record.at) if record.state == HELD else None
    who = record.payload.get("submitter")
    return Job(
        record=0,
        id=id,
        version=1,
        submitter=Submitter("user", who if isinstance(who, str) and who else "legacy"),
        need=settings.need(max(1, stage)),
        body=encode_json({"key": key, "run": {"args": record.payload}}),
        created_at=record.at,
        priority=record.name.priority,
        phase=Phase.ENDED if ended else Phase.HELD if held else Phase.WAITING,
        stage=stage,
        release=record.at,
        arrival=record.name.sequence,
        code="legacy" if record.state == FAILED else "",
        message=_FAILED if record.state == FAILED else "",
        profile=_profile(record),
        hold=held,
    )


def _profile(record: Record) -> str:
    named = record.payload.get("profile_name") or record.payload.get("profile")
    return named if isinstance(named, str) else ""
