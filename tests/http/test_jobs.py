"""Jobs over HTTP: submitting, reading, moving, cancelling, deleting."""

import pytest

from maitred.core.job import Finish
from maitred.core.settings import MINUTE, Settings
from tests.conftest import Clock
from tests.http.guest import Guest, body, is_problem

FIELDS = [
    "key",
    "submitter",
    "response_url",
    "delay",
    "priority",
    "immediate",
    "bulk",
    "class",
    "batch",
    "profile_name",
    "run",
    "metadata",
    "expires_at",
    "abandon_after",
    "id",
    "queue",
    "version",
    "running_versions",
    "state",
    "phase",
    "stage",
    "code",
    "message",
    "band",
    "created_at",
    "release_at",
    "nonce",
    "delay_reason",
    "position",
    "estimate",
    "waiting_for",
    "duration",
    "attempt",
    "worker",
    "progress",
    "holds",
    "last_successful_status",
    "retry_count",
    "space_needed",
    "identifiers",
    "ledger_id",
    "result",
    "artifacts",
    "timeline",
]


async def test_a_new_key_is_created_and_a_known_one_updated(guest: Guest) -> None:
    first = await guest.puts(body())
    assert (first.status_code, first.json()["outcome"]) == (201, "created")
    again = await guest.puts(body(metadata={"course": "cs101"}))
    assert (again.status_code, again.json()["outcome"]) == (200, "updated")
    assert again.json()["id"] == first.json()["id"]
    assert again.json()["metadata"] == {"course": "cs101"}


async def test_a_document_has_every_field_of_the_contract(guest: Guest) -> None:
    job = await guest.submits()
    document = (await guest.asks("GET", job["id"])).json()
    assert set(FIELDS) == set(document)
    assert document["created_at"] == document["release_at"] == "1970-01-01T00:16:40.000000Z"
    assert document["waiting_for"]["code"] == "no-worker"
    assert isinstance(document["nonce"], int)


async def test_files_are_named_but_not_included(guest: Guest) -> None:
    run = {"command": ["python", "main.py"], "files": {"main.py": {"text": "print(1)"}}, "artifacts": []}
    job = await guest.submits(run=run)
    assert job["run"] == {"command": ["python", "main.py"], "files": ["main.py"], "artifacts": []}


async def test_a_bulk_job_is_upgraded_by_a_put_without_bulk(guest: Guest) -> None:
    assert (await guest.submits(bulk=True))["band"] == "bulk"
    upgraded = await guest.submits()
    assert (upgraded["outcome"], upgraded["band"]) == ("upgraded", "scheduled")


async def test_a_running_key_gets_a_next_version_and_each_can_be_read(guest: Guest) -> None:
    job = await guest.submits()
    await guest.store.join("w", 1, ["handler:grade"])
    second = await guest.submits(metadata={"try": "2"})
    assert (second["outcome"], second["version"], second["running_versions"]) == ("next-version", 2, [1])
    first = (await guest.asks("GET", job["id"], params={"version": 1})).json()
    assert (first["version"], first["phase"], first["metadata"]) == (1, "running", {})
    assert is_problem(await guest.asks("GET", job["id"], params={"version": 3}), 404, "unknown-job")


async def test_a_running_job_tells_its_worker_and_its_present_run(guest: Guest, clock: Clock) -> None:
    job = await guest.submits()
    clock.at(5)
    await guest.store.join("w", 1, ["handler:grade"])
    document = (await guest.asks("GET", job["id"])).json()
    assert (document["state"], document["phase"], document["worker"]) == ("processing", "running", "w")
    assert document["timeline"] == [
        {
            "stage": "processing",
            "version": 1,
            "attempt": 1,
            "worker": "w",
            "start": "1970-01-01T00:16:45.000000Z",
            "end": None,
            "code": None,
        }
    ]
    [running] = (await guest.sees("/running"))["items"]
    assert (running["id"], running["worker"], running["duration"]) == (job["id"], "w", 600.0)
    assert (running["class"], running["elastic"]) == ("default", True)


async def test_an_ended_job_tells_result_and_timeline(guest: Guest, clock: Clock) -> None:
    job = await guest.submits()
    shift = await guest.store.join("w", 1, ["handler:grade"])
    clock.at(2)
    await guest.store.finish("w", [Finish(shift.starts[0].lease, result=b'{"points": 9.5}')])
    document = (await guest.asks("GET", job["id"])).json()
    assert (document["state"], document["phase"], document["result"]) == ("completed", None, {"points": 9.5})
    assert document["last_successful_status"] == "processing"
    assert document["timeline"][0]["end"] == "1970-01-01T00:16:42.000000Z"
    assert document["code"] is None
    assert document["position"] is None


async def test_release_goes_to_the_front_and_delay_to_the_end(guest: Guest) -> None:
    ids = [(await guest.submits(key, f"user:{key}"))["id"] for key in "abc"]
    assert (await guest.asks("POST", ids[2], "/release")).json()["position"] == 1
    assert (await guest.asks("POST", ids[0], "/delay")).json()["position"] == 3
    assert [item["key"] for item in (await guest.sees("/line"))["items"]] == ["c", "b", "a"]


async def test_a_nonce_that_is_no_longer_the_jobs_is_refused(guest: Guest) -> None:
    job = await guest.submits()
    wrong = await guest.asks("POST", job["id"], "/release", json={"nonce": job["nonce"] + 1})
    assert is_problem(wrong, 409, "other-nonce")
    right = await guest.asks("POST", job["id"], "/release", json={"nonce": job["nonce"]})
    assert right.json()["band"] == "front"


async def test_l15_an_immediate_job_cannot_be_moved(guest: Guest) -> None:
    job = await guest.submits(immediate=True)
    before = await guest.store.snapshot()
    for move in ("/release", "/delay"):
        assert is_problem(await guest.asks("POST", job["id"], move), 409, "not-movable")
    assert await guest.store.snapshot() == before


@pytest.mark.parametrize("id", ["nobody", "a/b", "a/release", "%2F", "ünï", "with space", "...", "?#"])
async def test_l17_an_unknown_id_is_not_found(guest: Guest, id: str) -> None:
    before = await guest.store.snapshot()
    for verb, what in (
        ("GET", ""),
        ("DELETE", ""),
        ("POST", "/release"),
        ("POST", "/delay"),
        ("POST", "/cancel"),
        ("POST", "/duration"),
    ):
        sent = {"json": {"seconds": 3}} if what == "/duration" else {}
        answer = await guest.asks(verb, id, what, **sent)
        assert is_problem(answer, 404, "unknown-job"), (verb, what, answer.text)
        assert repr(id) in answer.json()["detail"]
    assert await guest.store.snapshot() == before


async def test_l23_the_nth_in_line_has_position_n_everywhere(guest: Guest, clock: Clock) -> None:
    await guest.store.configure(Settings(lease=60 * MINUTE))
    for number in range(7):
        await guest.submits(f"k{number}", f"user:{number % 3}", priority=number % 2)
    line = await guest.sees_all("/line", limit=3)
    assert [item["position"] for item in line] == list(range(1, 8))
    for item in line:
        assert (await guest.asks("GET", item["id"])).json()["position"] == item["position"]
    started = []
    for number in range(7):
        shift = await guest.store.join(f"w{number}", 1, ["handler:grade"])
        started += [start.id for start in shift.starts]
    assert started == [item["id"] for item in line]


async def test_l24_a_submitter_who_sends_much_waits_longer_and_is_told_why(guest: Guest) -> None:
    await guest.store.configure(Settings(per_recent=1 * MINUTE, window=15 * MINUTE))
    jobs = [await guest.submits(f"k{number}") for number in range(3)]
    assert [job["delay"] for job in jobs] == [0.0, 60.0, 120.0]
    assert jobs[2]["delay_reason"] == "2 submissions in the last 15 min × 60 s"
    mine = await guest.sees("/submitters/user/1")
    assert [place["release_at"] for place in mine["places"]] == [
        "1970-01-01T00:16:40.000000Z",
        "1970-01-01T00:17:40.000000Z",
        "1970-01-01T00:18:40.000000Z",
    ]
    assert (mine["recent"], mine["next_delay"], mine["held"]) == (3, 180.0, False)
    assert mine["jobs"] == [job["id"] for job in reversed(jobs)]


async def test_a_cancelled_job_says_who_and_why_and_cannot_be_cancelled_again(guest: Guest) -> None:
    job = await guest.submits()
    cancelled = await guest.asks("POST", job["id"], "/cancel", json={"reason": "wrong file"})
    document = cancelled.json()
    assert (document["state"], document["code"]) == ("failed", "cancelled")
    assert document["message"] == "cancelled by admin: wrong file"
    assert is_problem(await guest.asks("POST", job["id"], "/cancel"), 409, "ended")


async def test_a_deleted_job_is_gone_and_its_key_can_be_queued_afresh(guest: Guest) -> None:
    job = await guest.submits()
    deleted = await guest.asks("DELETE", job["id"])
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert is_problem(await guest.asks("DELETE", job["id"]), 404, "unknown-job")
    assert (await guest.submits())["outcome"] == "created"


async def test_many_answers_in_order_with_each_fault_in_its_place(guest: Guest) -> None:
    sent = [body("a"), {**body("b"), "priority": 500}, body("a", "user:2"), body("c")]
    answer = await guest.http.post(f"{guest.url}/jobs/many", json=sent)
    assert answer.status_code == 207
    first, faulty, stranger, last = answer.json()["items"]
    assert (first["key"], first["outcome"], last["key"]) == ("a", "created", "c")
    assert [fault["path"] for fault in faulty["errors"]] == ["priority"]
    assert (stranger["status"], stranger["type"]) == (409, "urn:maitred:problem:other-submitter")


async def test_many_takes_a_thousand_and_no_more(guest: Guest) -> None:
    jobs = [body(f"k{number}", f"user:{number}") for number in range(1001)]
    too_many = await guest.http.post(f"{guest.url}/jobs/many", json=jobs)
    assert is_problem(too_many, 422, "invalid")
    assert (await guest.sees("/line"))["total"] == 0
    many = await guest.http.post(f"{guest.url}/jobs/many", json=jobs[:1000])
    assert {item["outcome"] for item in many.json()["items"]} == {"created"}
    line = await guest.sees_all("/line", limit=500)
    assert [item["key"] for item in line] == [job["key"] for job in jobs[:1000]]


async def test_a_running_job_tells_the_seconds_that_it_was_granted(guest: Guest) -> None:
    job = await guest.submits()
    assert job["duration"] == 600.0, "that is how long it will be granted at most"
    await guest.store.join("w", 1, ["handler:grade"])
    assert (await guest.asks("GET", job["id"])).json()["duration"] == 600.0


async def test_a_job_that_was_lifted_is_no_longer_called_bulk(guest: Guest) -> None:
    job = await guest.submits(bulk=True)
    assert (job["band"], job["immediate"], job["bulk"]) == ("bulk", False, True)
    lifted = (await guest.asks("POST", job["id"], "/release")).json()
    assert (lifted["band"], lifted["immediate"], lifted["bulk"]) == ("front", False, False)


async def test_a_fault_of_the_whole_body_is_a_sentence(guest: Guest) -> None:
    assert (await guest.puts([])).json()["detail"] == "must be an object"
