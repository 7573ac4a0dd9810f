"""The clerk: batches become jobs, and jobs become one report."""

import asyncio
import contextlib
from dataclasses import replace
from typing import Any

import pytest

from maitred.core.batch import BatchState
from maitred.core.settings import SECOND, Settings
from maitred.core.stages import INGEST
from maitred.errors import StoreUnavailable
from maitred.service.clerk import Clerk
from maitred.service.desk import Desk
from maitred.service.intake import Accepted, accept
from maitred.service.staff import clerks
from maitred.store.memory import MemoryStores
from maitred.store.port import Store, Stores
from maitred.wire import decode_json
from tests.conftest import Clock
from tests.service.address import Address, Reply
from tests.service.office import ADA, CSV, QUICK, Office, opened
from tests.service.post import postman
from tests.waiting import eventually

BRIEF = replace(QUICK, lease=SECOND // 20)
MD5 = "49afbd86a1ca9f34b677a3f09655eae9"


async def test_the_rows_of_a_table_become_jobs_with_their_columns_as_arguments(office: Office) -> None:
    id = await office.submit(
        payload=CSV, profile_name="p", priority=7, run={"handler": "grade", "args": {"x": 1}}
    )
    assert await office.clerk.work_off() == 1
    assert await office.bodies(id) == [
        {
            "key": f"{id}/{number}",
            "run": {"handler": "grade", "args": {"x": 1, "student": name, "points": str(number)}},
        }
        for number, name in enumerate(("ada", "bob", "cy"), 1)
    ]
    [view] = await office.store.read([(await office.store.batch_rows(id, 0, 1)).rows[0].id])
    assert view
    job = view.job
    assert (job.batch, job.profile, job.priority, job.exempt) == (id, "p", 7, True)
    assert job.submitter == ("user", "ada")
    batch = await office.batch(id)
    assert (batch.sealed, batch.state, batch.counts["pending"]) == (True, BatchState.PROCESSING, 3)


async def test_b11_the_last_job_ends_the_batch_with_one_report(office: Office) -> None:
    id = await office.submit(payload=CSV)
    await office.clerk.work_off()
    await office.do_jobs()
    assert await office.clerk.work_off() == 1
    batch = await office.batch(id)
    assert (batch.state, batch.sequence, batch.unsent) == (BatchState.COMPLETED, 1, False)
    report = await office.report(id)
    assert [row["key"] for row in report["completed"]] == [f"{id}/{n}" for n in (1, 2, 3)]
    assert (report["state"], report["failed"], report["deleted"]) == ("completed", [], [])
    assert await office.clerk.work_off() == 0


async def test_b12_a_failed_job_fails_its_batch_and_its_message_is_told(office: Office) -> None:
    id = await office.submit(payload="local_id\na\nb\n")
    await office.clerk.work_off()
    await office.do_jobs(lambda body: "no disk" if body["key"].endswith("/2") else "")
    await office.clerk.work_off()
    assert (await office.batch(id)).state is BatchState.FAILED
    [failed] = (await office.report(id))["failed"]
    assert (failed["key"], failed["local_id"], failed["message"]) == (f"{id}/2", "b", "no disk")


async def test_an_empty_batch_completes_and_a_deleted_job_is_named(office: Office) -> None:
    empty, other = await office.submit(), await office.submit(payload="a\n1\n")
    await office.clerk.work_off()
    [row] = (await office.store.batch_rows(other, 0, 10)).rows
    await office.store.remove(row.id)
    await office.clerk.work_off()
    assert (await office.batch(empty)).state is BatchState.COMPLETED
    assert (await office.batch(other)).state is BatchState.COMPLETED
    assert [each["key"] for each in (await office.report(other))["deleted"]] == [f"{other}/1"]


@pytest.mark.parametrize(
    ("kind_of_manifest", "payload_type"),
    [
        ("Object Manifest", "file"),
        ("ManifestOfContainers", "container"),
        ("manifest-of-manifests", "manifest"),
    ],
)
async def test_a_manifest_is_fetched_and_its_rows_say_what_they_are(
    office: Office, address: Address, kind_of_manifest: str, payload_type: str
) -> None:
    text = f"#%checkm_0.7\nhttp://a.org/1 | md5 | {MD5} | 7 | | one\n#%eof\n"
    url = address.at("/m", Reply(body=text.encode()))
    id = await office.submit(payload_filename=url, manifest_type=kind_of_manifest, submission_mode="Update")
    await office.clerk.work_off()
    [body] = await office.bodies(id)
    assert body["run"]["args"] == {
        "url": "http://a.org/1",
        "digest_algorithm": "md5",
        "digest": MD5,
        "size": 7,
        "name": "one",
        "payload_url": "http://a.org/1",
        "payload_type": payload_type,
        "submission_mode": "update",
    }


async def test_a_single_file_is_one_job_and_is_not_fetched(office: Office, address: Address) -> None:
    url = address.at("/f", Reply())
    erc = {"who": "A. Lee", "what": "A file"}
    id = await office.submit(payload_filename=url, manifest_type="single-file", erc=erc)
    await office.clerk.work_off()
    [body] = await office.bodies(id)
    assert body["run"]["args"] == {
        "url": url,
        "payload_url": url,
        "payload_type": "file",
        "erc": {"who": "A. Lee", "what": "A file", "when": "", "where": ""},
    }
    assert address.requests == []


async def test_rows_of_a_queue_with_stages_have_arguments_alone(store: Store, clock: Clock) -> None:
    office = await opened(store, clock, Settings(stages=INGEST))
    id = await office.submit(payload=CSV, run={"args": {"x": 1}})
    await office.clerk.work_off()
    assert (await office.batch(id)).fault == ""
    [first, *_] = await office.bodies(id)
    assert first["run"] == {"args": {"x": 1, "student": "ada", "points": "1"}}


async def test_jobs_keep_their_own_key_and_submitter(office: Office) -> None:
    bob = {"type": "team", "id": "bob"}
    id = await office.submit(jobs=[{"key": "a"}, {"key": "b", "submitter": bob, "priority": 1}])
    await office.clerk.work_off()
    assert [body["key"] for body in await office.bodies(id)] == ["a", "b"]
    rows = (await office.store.batch_rows(id, 0, 10)).rows
    views = await office.store.read([row.id for row in rows])
    assert [view and view.job.submitter.id for view in views] == ["ada", "bob"]
    assert [decode_json(row.label)["key"] for row in rows] == ["a", "b"]


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ("a,b\n1,2\n3\n", "the manifest has 1 faults: line 3: has too few columns: 1 instead of 2"),
        ("#%checkm_0.7\nx | md5 | 0\n", "line 2: the md5 digest has 1 characters instead of 32"),
        ("", "line 1: the manifest is empty"),
    ],
)
async def test_a_bad_manifest_makes_no_job_and_fails_the_batch_with_its_lines(
    office: Office, payload: str, words: str
) -> None:
    id = await office.submit(payload=payload)
    await office.clerk.work_off()
    batch = await office.batch(id)
    assert batch.state is BatchState.FAILED
    assert words in batch.fault
    assert sum(batch.counts.values()) == 0
    assert (await office.report(id))["message"] == batch.fault


async def test_an_address_that_does_not_answer_fails_the_batch_after_some_tries(
    office: Office, address: Address
) -> None:
    id = await office.submit(payload_filename=address.at("/m", Reply(503)))
    gone = await office.submit(payload_filename=address.at("/gone", Reply(404)))
    await office.clerk.work_off()
    assert "answered 503" in (await office.batch(id)).fault
    assert "answered 404" in (await office.batch(gone)).fault
    assert [request.path for request in address.requests] == ["/m", "/m", "/m", "/gone"]


async def test_an_address_that_answers_at_last_is_no_fault(office: Office, address: Address) -> None:
    url = address.at("/m", Reply(503), Reply(429), Reply(body=CSV.encode()))
    id = await office.submit(payload_filename=url)
    await office.clerk.work_off()
    assert (await office.batch(id)).counts["pending"] == 3


async def test_a_refused_job_is_named_and_the_rest_is_done(office: Office) -> None:
    other = {"key": "b", "submitter": ADA, "run": {"handler": "grade"}}
    await accept(office.store, office.settings, [other])
    id = await office.submit(jobs=[{"key": "a"}, {"key": "b"}, {"key": "c"}])
    await office.clerk.work_off()
    batch = await office.batch(id)
    assert batch.fault.startswith("1 of 3 jobs were refused: jobs.1, 'b': ")
    assert batch.counts["pending"] == 2
    await office.do_jobs()
    await office.clerk.work_off()
    assert (await office.batch(id)).state is BatchState.FAILED
    assert [row["key"] for row in (await office.report(id))["completed"]] == ["a", "c"]


async def test_rows_that_are_too_large_are_refused_and_counted(store: Store, clock: Clock) -> None:
    office = await opened(store, clock, Settings(max_body=200))
    id = await office.submit(payload="a\n" + f"{'x' * 300}\n" * 30 + "y\n")
    await office.clerk.work_off()
    batch = await office.batch(id)
    assert batch.fault.startswith("30 of 31 jobs were refused: row 1 (line 2), ")
    assert batch.fault.endswith("; and 10 more")
    assert batch.counts["pending"] == 1


async def test_an_open_batch_is_expanded_and_stays_open(office: Office) -> None:
    id = await office.submit(payload=CSV, seal=False)
    await office.clerk.work_off()
    await office.do_jobs()
    await office.clerk.work_off()
    batch = await office.batch(id)
    assert (batch.sealed, batch.expanding, batch.state) == (False, False, BatchState.PROCESSING)
    await office.store.seal_batch(id)
    await office.clerk.work_off()
    assert (await office.batch(id)).state is BatchState.COMPLETED


async def test_b13_and_b14_an_update_report_tells_what_changed_and_is_sent_only_then(
    office: Office, address: Address
) -> None:
    url = address.at("/r", Reply(204))
    id = await office.submit(payload="a\n1\n2\n", response_url=url)
    await office.clerk.work_off()
    await office.do_jobs(lambda _: "no disk")
    await office.clerk.work_off()
    rows = (await office.report(id))["failed"]
    for message, state in (("no disk", BatchState.FAILED), ("", BatchState.FAILED)):
        # The second job fails each time; the first one at first.
        for row in rows if message else rows[:1]:
            await office.store.retry(row["id"])
        await office.do_jobs(lambda _, message=message: message)  # type: ignore[misc]
        await office.store.update_batch(id)
        await office.clerk.work_off()
        assert (await office.batch(id)).state is state
    await office.store.retry(rows[1]["id"])
    await office.do_jobs()
    await office.store.update_batch(id)
    await office.clerk.work_off()
    batch, last = await office.batch(id), await office.report(id)
    assert (batch.state, batch.sequence) == (BatchState.COMPLETED, 4)
    assert (last["kind"], [row["id"] for row in last["completed"]], last["failed"]) == (
        "update-report",
        [rows[1]["id"]],
        [],
    )
    ids = [request.headers["webhook-id"] for request in address.requests]
    expected = [await office.message_id(id, sequence) for sequence in (1, 3, 4)]
    assert ids == expected, "the second report had nothing new, and was not sent"


async def test_a_full_queue_is_waited_for(store: Store, clock: Clock) -> None:
    office = await opened(store, clock, Settings(max_total=2))
    id = await office.submit(payload=CSV)
    async with asyncio.TaskGroup() as tasks:
        filling = tasks.create_task(office.clerk.work_off())
        done: list[str] = []
        while not filling.done():
            done += await office.do_jobs()
            await asyncio.sleep(0)
    done += await office.do_jobs()
    assert sorted(done) == [f"{id}/{n}" for n in (1, 2, 3)]
    await office.clerk.work_off()
    assert (await office.batch(id)).state is BatchState.COMPLETED


async def test_two_clerks_share_the_batches_and_do_each_once(office: Office, address: Address) -> None:
    url = address.at("/r", Reply(200))
    ids = [await office.submit(payload=CSV, response_url=url) for _ in range(6)]
    clerks = [Clerk(office.store, name, postman(), safety_net=0.01) for name in ("a", "b")]
    tasks = [asyncio.create_task(clerk.run()) for clerk in clerks]
    done: list[str] = []
    async with asyncio.timeout(30):
        while {(await office.batch(id)).state for id in ids} != {BatchState.COMPLETED} or len(
            address.requests
        ) < 6:
            done += await office.do_jobs()
            await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert sorted(done) == sorted(f"{id}/{n}" for id in ids for n in (1, 2, 3))
    told = [each.headers["webhook-id"] for each in address.requests]
    assert sorted(told) == [await office.message_id(id) for id in ids]


async def test_a_clerk_that_is_stopped_gives_its_lock_up_at_once(office: Office, address: Address) -> None:
    address.silent = True
    id = await office.submit(payload_filename=address.at("/m", Reply(body=CSV.encode())))
    task = asyncio.create_task(office.clerk.run())
    await address.arrived.wait()
    assert (await office.batch(id)).owner == "office"
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (await office.batch(id)).owner == ""
    address.silent = False
    assert await Clerk(office.store, "other", postman()).work_off() == 1
    assert (await office.batch(id)).counts["pending"] == 3


async def test_a_lock_is_kept_for_as_long_as_the_work_takes(
    store: Store, clock: Clock, address: Address
) -> None:
    office = await opened(store, clock, BRIEF)
    address.silent = True
    id = await office.submit(payload_filename=address.at("/m", Reply(body=CSV.encode())))
    task = asyncio.create_task(office.clerk.work_off())
    await address.arrived.wait()
    for _ in range(5):
        office.later(BRIEF.lease / SECOND * 0.9)
        assert await Clerk(office.store, "other", postman()).work_off() == 0

        async def kept() -> bool:
            return (await office.batch(id)).locked_until == office.clock.now + BRIEF.lease

        await eventually(kept)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_clerk_that_lost_its_lock_leaves_the_batch_alone(
    store: Store, clock: Clock, address: Address
) -> None:
    office = await opened(store, clock, BRIEF)
    address.silent = True
    id = await office.submit(payload_filename=address.at("/m", Reply(body=CSV.encode())))
    first = asyncio.create_task(office.clerk.work_off())
    await address.arrived.wait()
    address.silent = False
    other = Clerk(office.store, "other", postman())
    office.later(100)
    while not await other.work_off():
        # The first one kept its lock just before.
        office.later(100)
    assert await first == 1, "it hears of it, and waits no longer for its own answer"
    batch = await office.batch(id)
    assert (batch.fault, batch.counts["pending"]) == ("", 3)
    assert len(address.requests) == 2


async def test_the_clerks_of_a_server_work_for_every_queue_and_wake_at_once(clock: Clock) -> None:
    stores: Stores = MemoryStores(clock=clock)
    offices = [await opened(stores.queue(name), clock, QUICK) for name in ("a", "b")]
    staff = clerks(stores, "server", postman())
    task = asyncio.create_task(staff.run())
    await asyncio.sleep(0)
    ids = [await office.submit() for office in offices]
    for office, id in zip(offices, ids, strict=True):
        staff.wake(office.store.queue)
        await office.completed(id)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    staff.wake("a")


class Flaky:
    """A store whose lock verb fails for a while, as when it is away."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.lost = 3

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def lock_batch(self, owner: str, token: bytes) -> Any:
        self.lost -= 1
        if self.lost >= 0:
            raise StoreUnavailable
        return await self._store.lock_batch(owner, token)


async def test_a_clerk_outlives_a_lost_store(office: Office) -> None:
    id = await office.submit()
    clerk = Clerk(Flaky(office.store), "a", postman(), safety_net=0.001)
    task = asyncio.create_task(clerk.run())
    await office.completed(id)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_a_retry_of_a_batch_leaves_alone_what_was_submitted_again_after_its_report(
    office: Office, stores: Stores
) -> None:
    job = {"key": "a", "submitter": ADA, "run": {"handler": "grade"}}
    id = await office.submit(jobs=[job])
    await office.clerk.work_off()
    await office.do_jobs(lambda _: "no")
    await office.clerk.work_off()
    [again] = await accept(office.store, office.settings, [job])
    assert isinstance(again, Accepted)
    await office.do_jobs(lambda _: "no")
    assert await Desk(stores).batches.retry(office.store.queue, id) == 0
