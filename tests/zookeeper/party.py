"""Short words for the tests of the tree: batches, jobs, and where a job is found."""

import json
from collections.abc import Sequence

from maitred.core.batch import BatchOrder
from maitred.core.ids import job_id
from maitred.core.job import Order, Submitter
from maitred.core.stages import PENDING
from maitred.store.zookeeper.intake import Newcomer
from maitred.store.zookeeper.ledger import Ledger
from maitred.store.zookeeper.records import JobEntry
from maitred.store.zookeeper.tree import read_entry

U1 = Submitter("user", "1")
RUN = b"r" * 16
SUBMISSION = json.dumps(
    {
        "profile_name": "images",
        "submitter": {"type": "user", "id": "1"},
        "payload_filename": "manifest.checkm",
        "manifest_type": "object-manifest",
        "submission_mode": "add",
        "erc": {"who": "Ada", "what": "pictures", "when": "1843", "where": "London"},
        "response_type": "JSON",
    },
    indent=1,
).encode()


def batch_order(external_id: str = "", *, sealed: bool = True, submitter: Submitter = U1) -> BatchOrder:
    return BatchOrder(external_id, submitter, "images", SUBMISSION, expanding=False, sealed=sealed)


def newcomer(key: str, *, priority: int = 5, bid: str = "", body: bytes | None = None) -> Newcomer:
    args = {"payload_url": f"file:///{key}", "payload_type": "file", "local_id": f"local-{key}"}
    text = body or json.dumps({"key": key, "run": {"args": args}}).encode()
    label = json.dumps({"key": key, "local_id": f"local-{key}"}).encode()
    order = Order(
        job_id(key), U1, "stage:estimating", text, priority=priority, batch=bid, profile="images", label=label
    )
    return Newcomer(order, release=7, arrival=9)


async def batch_of(
    ledger: Ledger, *keys: str, external_id: str = "", seal: bool = True
) -> tuple[str, list[str]]:
    """Make a batch with jobs of these keys; give its id and theirs."""
    bid = (await ledger.batches.create(batch_order(external_id, sealed=False))).id
    added = await ledger.intake.add(bid, [newcomer(key, bid=bid) for key in keys])
    if seal:
        await ledger.batches.seal(bid)
    return bid, [each.jid for each in added]


async def into(ledger: Ledger, jid: str, state: str) -> JobEntry:
    """Carry a job on until it is in a state."""
    job = await ledger.jobs.read(jid)
    while job.state != state:
        job = await ledger.jobs.start(job, RUN, 1)
        if job.state != state:
            job = await ledger.jobs.advance(jid, RUN, b"{}")
    return job


async def failed(ledger: Ledger, jid: str, stage: str = "downloading", message: str = "no route") -> JobEntry:
    """Let a job fail in a stage."""
    job = await into(ledger, jid, stage)
    if not job.standing.run:
        await ledger.jobs.start(job, RUN, 1)
    return await ledger.jobs.fail(jid, RUN, "error", message)


async def entries(ledger: Ledger, jid: str) -> list[str]:
    """Find every index entry of a job."""
    found = []
    for state in ledger.reader.job_states:
        names = await ledger.session.children(ledger.tree.state(state)) or []
        found += [f"{state}/{name}" for name in names if read_entry(name) == jid]
    return found


async def buckets(ledger: Ledger, bid: str) -> dict[str, list[str]]:
    """List the buckets of a batch that hold anything."""
    found: dict[str, list[str]] = {}
    for name in await ledger.session.children(ledger.tree.batch(bid, "states")) or []:
        jids = await ledger.session.children(ledger.tree.batch(bid, "states", name))
        if jids:
            found[name] = sorted(jids)
    return found


async def order_of(ledger: Ledger, state: str = PENDING) -> Sequence[str]:
    return await ledger.pending(state).first(1_000)


async def everything(ledger: Ledger, path: str | None = None) -> dict[str, bytes]:
    """Read the whole tree under a path."""
    top = path or ledger.tree.root
    node = await ledger.session.get(top)
    found = {top: node.data} if node else {}
    for name in await ledger.session.children(top) or []:
        found |= await everything(ledger, f"{top}/{name}")
    return found
