"""A line that is rebuilt from the tree: what the reference takes in is what the tree has."""

import json

from maitred.core.job import Held, Job, Phase
from maitred.core.settings import Settings
from maitred.core.stages import INGEST
from maitred.store.memory import MemoryStores
from maitred.store.zookeeper.ledger import Ledger
from maitred.store.zookeeper.payloads import Reason
from maitred.store.zookeeper.restoring import job_of
from maitred.store.zookeeper.session import Create
from tests.zookeeper.party import RUN, batch_of, failed, into

SETTINGS = Settings(order="oldest-first", stages=INGEST)


async def jobs_of(ledger: Ledger, *jids: str) -> list[Job]:
    return [job_of(entry, SETTINGS) for entry in await ledger.reader.jobs(jids) if entry]


async def test_b26_a_wiped_line_is_rebuilt_from_the_tree(ledger: Ledger) -> None:
    _, [first, second, third, fourth] = await batch_of(ledger, "a", "b", "c", "d")
    await ledger.jobs.start(await into(ledger, second, "downloading"), RUN, 2)
    await ledger.jobs.hold(third, Reason("job", "c", "op", "why", 5))
    await failed(ledger, fourth, "recording")
    store = MemoryStores().queue("ingest")
    await store.configure(SETTINGS)
    jobs = await jobs_of(ledger, first, second, third, fourth)
    assert await store.restore(jobs) == ["made"] * 4
    assert await store.restore(jobs) == ["ignored"] * 4
    views = await store.read([job.id for job in jobs])
    seen = [(view.job.ledger, view.job.state(INGEST), view.job.phase) for view in views if view]
    assert seen == [
        (first, "pending", Phase.WAITING),
        (second, "downloading", Phase.WAITING),
        (third, "held", Phase.HELD),
        (fourth, "failed", Phase.ENDED),
    ]
    assert jobs[1].need == "stage:downloading"
    assert jobs[2].hold == Held("job", jobs[2].id, "op", "why", 5)
    assert (jobs[3].code, jobs[3].message, jobs[3].stage) == ("error", "no route", 5)
    await ledger.jobs.prioritise(first, 2)
    assert await store.restore(await jobs_of(ledger, first)) == ["changed"]
    assert await store.check() == []


async def test_a_job_that_another_program_made_is_taken_in(ledger: Ledger) -> None:
    tree, jid = ledger.tree, "jid0000000777"
    status = {"status": "Recording", "last_successful_status": "Processing", "retry_count": 1}
    await ledger.session.multi(
        [
            Create(tree.job(jid)),
            Create(tree.job(jid, "status"), json.dumps(status).encode()),
            Create(tree.job(jid, "bid")),
            Create(tree.job(jid, "configuration"), b'{"submitter":"ada","profile_name":"images"}'),
            Create(tree.job(jid, "priority"), b"3"),
            Create(tree.entry("recording", 3, jid)),
        ]
    )
    [job] = await jobs_of(ledger, jid)
    assert (job.need, job.stage, job.priority, job.retries) == ("stage:recording", 5, 3, 1)
    assert (job.submitter.id, job.profile, job.ledger, job.status) == ("ada", "images", jid, 1)
    await ledger.jobs.start(await ledger.jobs.read(jid), RUN, 1)
    assert (await ledger.jobs.advance(jid, RUN, b"{}")).state == "notify"
