"""The whole program on a queue whose ledger is a tree: `up`, batches, holds, reconcile, and the import."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from maitred.client import Client
from maitred.core.settings import SECOND
from maitred.core.stages import INGEST
from maitred.service.legacy import import_records
from maitred.store.connect import connect
from maitred.store.ledgered import LedgeredStore
from maitred.store.memory import MemoryStores
from maitred.store.zookeeper.session import Create, Session
from tests.cli.house import House
from tests.closing import closing
from tests.waiting import eventually
from tests.zookeeper.house import House as Queue
from tests.zookeeper.house import settings_for
from tests.zookeeper.server import ZooKeeper
from tests.zookeeper.test_legacy import MILLISECONDS, SECONDS, data

APP = f"""
import maitred

q = maitred.Queue("default")

async def step(job):
    if job.args.get("fails_in") == job.stage:
        raise ValueError("no route")
    return (job.data or []) + [job.stage]

for name in {list(INGEST)}:
    q.stage(name)(step)
"""


@pytest.fixture
def house(tmp_path: Path, zookeeper: ZooKeeper, root: str, layout: str) -> Iterator[House]:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "maitred.toml").write_text(
        f"[queues.default]\nstages = {json.dumps(list(INGEST))}\nlayout = {layout!r}\n"
        f'ledger = "zookeeper://{zookeeper.host}{root}"\n'
    )
    house = House(tmp_path)
    yield house
    for process in house.running:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_a_batch_is_submitted_watched_reported_and_deleted(house: House) -> None:
    (house.home / "manifest.csv").write_text("url,fails_in\nhttp://a/1,\nhttp://a/2,recording\n")
    up, _ = house.comes_up("up", "--port", "0", "--slots", "2", "--app", "app")
    sent = json.loads(house.says("batch", "submit", "manifest.csv", "--as", "user:7", "--json"))
    watch = house.starts("batch", "watch", sent["id"])
    shown, said = watch.communicate(timeout=60)
    assert watch.returncode == 1, (shown, said)
    report = json.loads(house.says("batch", "report", sent["id"], "--json"))
    assert (len(report["completed"]), len(report["failed"])) == (1, 1)
    assert "no route" in report["failed"][0]["message"]
    listed = json.loads(house.says("batch", "list", "--json"))
    assert [each["id"] for each in listed["items"]] == [sent["id"]]
    assert json.loads(house.says("check", "--json"))["violations"] == []
    assert "agree" in house.says("reconcile")
    house.says("batch", "rm", sent["id"])
    assert json.loads(house.says("batch", "list", "--json"))["items"] == []
    assert "maitred/store" not in house.stops(up)


async def test_a_hold_outlives_the_house_and_its_store(house: House) -> None:
    up, address = house.comes_up("up", "--port", "0", "--slots", "0", "--data", "one")
    async with Client(address) as client:
        body = {"key": "a", "submitter": {"type": "user", "id": "7"}, "run": {"args": {}}}
        job = await client.put("default", body)
        await client.hold_job("default", job.id, "later")
        other = await client.put("default", {**body, "key": "b"})
    house.stops(up)
    # Another data directory is another, empty line.
    up, address = house.comes_up("up", "--port", "0", "--slots", "1", "--app", "app", "--data", "two")
    async with Client(address) as client:

        async def completed() -> bool:
            page = await client.jobs("default", state="completed")
            return [each.id for each in page.items] == [other.id]

        await eventually(completed)
        held = await client.job("default", job.id)
        assert (held.state, [each.reason for each in held.holds]) == ("held", ["later"])
        await client.resume_job("default", job.id)

        async def both() -> bool:
            return (await client.job("default", job.id)).state == "completed"

        await eventually(both)
    assert "Traceback" not in house.stops(up)


# -------------------------------------------------------------------- older records

RECORDS = {
    "mrtQ-05000000000001": data(0, SECONDS, b"job=first\nsubmitter=Ada\nprofile=images"),
    "mrtQ-02100000000002": data(3, MILLISECONDS, b'{"job": "second"}'),
    "mrtQ-050000000003": data(2, SECONDS),
    "mrtQ-07000000000004": data(1, SECONDS, b"<job><name>fourth</name></job>"),
    "mrtQ-07000000000005": data(4, SECONDS),
    "mrtQ-07000000000006": data(5, SECONDS),
    "mrtQ-07000000000007": b"",
}


@pytest.fixture
async def older(zookeeper: ZooKeeper, root: str) -> str:
    """Give the address of older records."""
    session = Session(zookeeper.host)
    parent = f"{root}-older"
    nodes = [Create(f"{parent}/{name}", each) for name, each in RECORDS.items()]
    await session.multi([Create(parent), *nodes])
    await session.close()
    return f"zookeeper://{zookeeper.host}{parent}"


async def test_older_records_become_jobs_where_they_were(queue_house: Queue, older: str) -> None:
    queue_house.clock.now = 2 * SECONDS * SECOND
    done = await import_records(queue_house.store, older)
    assert done.counts == {
        "Pending": 1,
        "Failed": 1,
        "Deleted": 1,
        "Consumed": 1,
        "Completed": 1,
        "Held": 1,
    }
    assert (done.made, done.known, [node for node, _ in done.faults]) == (5, 0, ["mrtQ-07000000000007"])
    again = await import_records(queue_house.store, older)
    assert (again.made, again.known) == (0, 5)
    entries = [entry async for entry in queue_house.ledger.unended()]
    assert {entry.state for entry in entries} == {"pending", "estimating", "held"}
    pending = next(entry for entry in entries if entry.state == "pending")
    assert (pending.submitter.id, pending.profile, pending.priority) == ("Ada", "images", 5)
    ended = {view.job.code: view.job for view in (await queue_house.store.ended(0, 10)).views}
    failed = await queue_house.ledger.jobs.read(ended["legacy"].ledger)
    assert (failed.state, failed.last) == ("failed", "estimating")
    await queue_house.store.retry(ended["legacy"].id)
    done_now = await queue_house.work()
    assert len(done_now) == 6 + 6 + 5, "pending and consumed from the start, failed after estimating"
    assert (await queue_house.ledger.jobs.read(ended[""].ledger)).last == "notify"


async def test_older_records_go_into_a_queue_whose_ledger_is_its_store(older: str) -> None:
    store = MemoryStores().queue("ingest")
    await store.configure(settings_for("", "seed"))
    done = await import_records(store, older)
    assert (done.made, done.known) == (5, 0)
    assert (await import_records(store, older)).known == 5
    counts = (await store.status()).counts
    assert {state: n for state, n in counts.items() if n} == {
        "pending": 1,
        "estimating": 1,
        "held": 1,
        "failed": 1,
        "completed": 1,
    }
    assert await store.check() == []


def test_legacy_import_is_a_command(house: House, older: str) -> None:
    up, _ = house.comes_up("up", "--port", "0", "--slots", "0")
    process = house.starts("legacy", "import", older)
    shown, said = process.communicate(timeout=60)
    assert process.returncode == 1, said
    assert "5 jobs were made in default, 0 were known already." in shown
    assert "Deleted: 1 (left out)" in shown
    assert "mrtQ-07000000000007 cannot be read" in said
    wrong = house.starts("legacy", "import", "nonsense")
    assert wrong.wait(60) == 2
    house.stops(up)


async def test_whoever_opens_a_queue_gets_its_ledger(zookeeper: ZooKeeper, root: str) -> None:
    async with closing(connect("memory://")) as stores:
        store = stores.queue("ingest")
        assert isinstance(store, LedgeredStore)
        await store.configure(settings_for(f"zookeeper://{zookeeper.host}{root}", "seed"))
        assert await store.tree()
        assert stores.queue("ingest") is store
        assert (await store.status()).settings.max_body == 512 * 1024
