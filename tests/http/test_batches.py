"""Batches over HTTP: submitted once, filled, sealed, reported, retried, deleted; every refusal has a type."""

from typing import Any

import httpx
import pytest

from maitred.core.job import Finish
from maitred.core.settings import MINUTE, Settings
from maitred.service.clerk import Clerk
from maitred.store.port import Store
from tests.http.guest import Guest, body, is_problem
from tests.service.post import postman

NEED = "handler:grade"
ADA = {"type": "user", "id": "ada"}
MANIFEST = "url,local_id\nhttp://example.org/1.zip,one\nhttp://example.org/2.zip,two\n"
BATCH: dict[str, Any] = {
    "submitter": ADA,
    "external_id": "regrade/1:a_b",
    "payload": MANIFEST,
    "run": {"handler": "grade", "args": {"assignment": 3}},
}


async def submits(guest: Guest, **more: Any) -> dict[str, Any]:
    """POST a batch; give its document."""
    answer = await guest.http.post(f"{guest.url}/batches", json={**BATCH, **more})
    assert answer.is_success, answer.text
    document: dict[str, Any] = answer.json()
    return document


async def opens(guest: Guest, **more: Any) -> str:
    """POST a batch that jobs can be added to; give its id."""
    return str((await submits(guest, payload=None, external_id=None, seal=False, **more))["id"])


async def asks(guest: Guest, verb: str, id: str, what: str = "", **more: Any) -> httpx.Response:
    """Ask something of one batch."""
    return await guest.http.request(verb, f"{guest.url}/batches/{id}{what}", **more)


async def clerk_works(store: Store) -> None:
    """Let a clerk do all that there is."""
    await Clerk(store, "clerk", postman()).work_off()


async def jobs_end(store: Store, *codes: str) -> None:
    """Let a worker run jobs one after the other, and end each with its code."""
    await store.configure(Settings(lease=60 * MINUTE))
    shift = await store.join("w", 1, [NEED])
    for code in codes:
        [start] = shift.starts
        shift = await store.finish("w", [Finish(start.lease, code, "it broke" if code else "")])
    await store.leave("w")


async def test_a_batch_is_stored_as_it_was_sent_and_found_by_its_external_id(guest: Guest) -> None:
    answer = await guest.http.post(f"{guest.url}/batches", json=BATCH)
    batch = answer.json()
    assert (answer.status_code, batch["outcome"], batch["state"]) == (201, "created", "pending")
    assert (batch["external_id"], batch["submitter"], batch["run"]) == (
        "regrade/1:a_b",
        ADA,
        {"handler": "grade", "args": {"assignment": 3}},
    )
    assert "payload" not in batch
    again = await guest.http.post(f"{guest.url}/batches", json=BATCH)
    assert (again.status_code, again.json()["id"]) == (200, batch["id"])
    assert again.json()["outcome"] == "known"
    found = await guest.sees("/batches", external_id="regrade/1:a_b")
    assert ([item["id"] for item in found["items"]], found["total"]) == ([batch["id"]], 1)
    shown = (await asks(guest, "GET", batch["id"])).json()
    assert shown == {name: value for name, value in batch.items() if name != "outcome"}


async def test_the_external_id_of_another_submitter_is_refused(guest: Guest) -> None:
    await submits(guest)
    other = await guest.http.post(
        f"{guest.url}/batches", json={**BATCH, "submitter": {"type": "team", "id": "ada"}}
    )
    assert is_problem(other, 409, "other-submitter")
    assert "external id" in other.json()["detail"]
    assert (await guest.sees("/batches"))["total"] == 1


async def test_a_manifest_becomes_jobs_and_one_report(guest: Guest) -> None:
    bid = (await submits(guest))["id"]
    assert is_problem(await asks(guest, "GET", bid, "/report"), 404, "no-report")
    await clerk_works(guest.store)
    batch = (await asks(guest, "GET", bid)).json()
    assert (batch["state"], batch["sealed"], batch["counts"]["pending"]) == ("processing", True, 2)
    jobs = await guest.sees_all("/jobs", batch=bid, limit=1)
    assert [(job["key"], job["batch"], job["submitter"]) for job in jobs] == [
        (f"{bid}/1", bid, ADA),
        (f"{bid}/2", bid, ADA),
    ]
    assert jobs[0]["run"]["args"]["local_id"] == "one"
    assert jobs[0]["run"]["args"]["assignment"] == 3
    assert (await guest.sees("/jobs", batch=bid, limit=1))["total"] == 2
    await jobs_end(guest.store, "", "error")
    await clerk_works(guest.store)
    batch = (await asks(guest, "GET", bid)).json()
    assert (batch["state"], batch["counts"]["completed"], batch["counts"]["failed"]) == ("failed", 1, 1)
    report = (await asks(guest, "GET", bid, "/report")).json()
    assert (report["sequence"], report["kind"], report["state"]) == (1, "report", "failed")
    assert {row["local_id"] for row in report["completed"] + report["failed"]} == {"one", "two"}
    assert report["failed"][0]["message"] == "it broke"


async def test_failed_jobs_are_retried_together_and_an_update_report_tells_what_changed(guest: Guest) -> None:
    bid = (await submits(guest))["id"]
    await clerk_works(guest.store)
    await jobs_end(guest.store, "", "error")
    await clerk_works(guest.store)
    assert (await asks(guest, "POST", bid, "/retry")).json() == {"batch": bid, "retried": 1}
    assert (await asks(guest, "POST", bid, "/retry", json={"reason": "again"})).json()["retried"] == 0
    await jobs_end(guest.store, "")
    updating = (await asks(guest, "POST", bid, "/update-report")).json()
    assert updating["state"] == "update-reporting"
    await clerk_works(guest.store)
    report = (await asks(guest, "GET", bid, "/report")).json()
    assert (report["sequence"], report["kind"], report["state"]) == (2, "update-report", "completed")
    assert (len(report["completed"]), report["failed"]) == (1, [])
    refused = await asks(guest, "POST", bid, "/update-report")
    assert is_problem(refused, 409, "illegal-move")
    assert (refused.json()["old"], refused.json()["new"]) == ("completed", "update-reporting")


async def test_jobs_are_added_to_an_open_batch_and_known_keys_passed_over(guest: Guest) -> None:
    bid = await opens(guest)
    sent = [body("a"), body("b", run={"handler": "7"}), {"key": "c"}, {**body("d"), "batch": "bid9"}, 7]
    answer = await asks(guest, "POST", bid, "/jobs", json=sent)
    items = answer.json()["items"]
    assert answer.status_code == 207
    assert [item.get("outcome", item.get("status")) for item in items] == [
        "created",
        422,
        "created",
        422,
        422,
    ]
    assert (items[0]["batch"], items[0]["submitter"]["id"]) == (bid, "1")
    assert items[2]["submitter"] == ADA, "what a body does not say, the batch does"
    assert items[3]["errors"][0]["path"] == "batch"
    again = (await asks(guest, "POST", bid, "/jobs", json=[body("a", priority=1)])).json()["items"]
    assert (again[0]["outcome"], again[0]["priority"]) == ("known", 5)
    sealed = (await asks(guest, "POST", bid, "/seal")).json()
    assert (sealed["sealed"], sealed["counts"]["pending"]) == (True, 2)
    assert is_problem(await asks(guest, "POST", bid, "/jobs", json=[body("e")]), 409, "sealed")
    assert is_problem(await asks(guest, "POST", bid, "/seal"), 409, "sealed")


async def test_a_job_put_into_a_batch_is_refused_where_the_batch_forbids_it(guest: Guest) -> None:
    bid = await opens(guest)
    unknown = await guest.puts(body("a", batch="bid0000009999"))
    assert is_problem(unknown, 422, "invalid")
    assert [fault["path"] for fault in unknown.json()["errors"]] == ["batch"]
    await guest.submits("outside")
    assert is_problem(await guest.puts(body("outside", batch=bid)), 409, "other-batch")
    inside = await guest.submits("inside", batch=bid)
    assert (inside["outcome"], inside["batch"]) == ("created", bid)
    assert (await guest.submits("inside", batch=bid, metadata={"a": "b"}))["outcome"] == "updated"
    await asks(guest, "POST", bid, "/seal")
    assert is_problem(await guest.puts(body("late", batch=bid)), 409, "sealed")


async def test_while_its_report_is_made_a_batchs_jobs_stay_as_they_are(guest: Guest) -> None:
    bid = await opens(guest)
    job = await guest.submits("a", batch=bid)
    await asks(guest, "POST", bid, "/seal")
    await jobs_end(guest.store, "error")
    assert (await asks(guest, "GET", bid)).json()["state"] == "reporting"
    assert is_problem(await guest.puts(body("a")), 409, "reporting")
    assert is_problem(await guest.asks("POST", job["id"], "/retry"), 409, "reporting")
    assert is_problem(await guest.asks("DELETE", job["id"]), 409, "reporting")
    assert is_problem(await asks(guest, "POST", bid, "/retry"), 409, "reporting")
    assert is_problem(await asks(guest, "DELETE", bid), 409, "reporting")
    await clerk_works(guest.store)
    assert (await asks(guest, "POST", bid, "/retry")).json()["retried"] == 1


async def test_a_held_batch_says_why_and_goes_on(guest: Guest) -> None:
    bid = await opens(guest)
    await guest.submits("a", batch=bid)
    held = (await asks(guest, "POST", bid, "/hold", json={"reason": "wrong files"})).json()
    assert held["state"] == "held"
    [hold] = held["holds"]
    assert (hold["kind"], hold["name"], hold["by"], hold["reason"]) == ("batch", bid, "admin", "wrong files")
    assert not (await guest.store.join("w", 1, [NEED])).starts
    resumed = (await asks(guest, "POST", bid, "/resume")).json()
    assert (resumed["state"], resumed["holds"]) == ("processing", [])
    assert is_problem(await asks(guest, "POST", bid, "/resume"), 409, "not-held")
    assert len(await guest.store.running()) == 1


async def test_a_batch_is_deleted_with_its_jobs_when_all_have_ended(guest: Guest) -> None:
    bid = await opens(guest)
    job = await guest.submits("a", batch=bid)
    await asks(guest, "POST", bid, "/seal")
    assert is_problem(await asks(guest, "DELETE", bid), 409, "unfinished")
    await jobs_end(guest.store, "")
    await clerk_works(guest.store)
    assert (await asks(guest, "DELETE", bid)).status_code == 204
    assert is_problem(await asks(guest, "GET", bid), 404, "unknown-batch")
    assert is_problem(await guest.asks("GET", job["id"]), 404, "unknown-job")
    assert (await guest.sees("/batches"))["total"] == 0
    assert await guest.sees("/jobs", batch=bid) == {"items": [], "next": None, "total": 0}


async def test_batches_are_listed_newest_first_by_state_and_page(guest: Guest) -> None:
    ids = [await opens(guest) for _ in range(5)]
    await asks(guest, "POST", ids[1], "/hold")
    for limit in (1, 2, 50):
        found = await guest.sees_all("/batches", limit=limit)
        assert [batch["id"] for batch in found] == ids[::-1], limit
    assert [batch["id"] for batch in await guest.sees_all("/batches", state="held")] == [ids[1]]
    assert len((await guest.sees("/batches", state="pending"))["items"]) == 4
    for query in ({"state": "what"}, {"cursor": "what"}, {"limit": 0}, {"color": "red"}):
        assert is_problem(await guest.http.get(f"{guest.url}/batches", params=query), 422, "invalid"), query


async def test_the_cursor_of_one_list_is_no_cursor_of_another(guest: Guest) -> None:
    for number in range(2):
        await opens(guest)
        await guest.submits(f"k{number}", f"user:{number}")
    for one, other in (("batches", "line"), ("line", "batches"), ("jobs", "batches"), ("batches", "jobs")):
        cursor = (await guest.sees(f"/{one}", limit=1))["next"]
        assert cursor, one
        refused = await guest.http.get(f"{guest.url}/{other}", params={"cursor": cursor})
        assert is_problem(refused, 422, "invalid"), (one, other)


async def test_a_batchs_jobs_are_found_by_state_too(guest: Guest) -> None:
    bid = await opens(guest)
    await asks(guest, "POST", bid, "/jobs", json=[body(key, f"user:{key}") for key in "abc"])
    await guest.submits("outside", "user:x", priority=0)
    await jobs_end(guest.store, "", "error")
    found = await guest.sees_all("/jobs", batch=bid, state="failed", limit=1)
    assert [job["key"] for job in found] == ["a"]
    assert [job["key"] for job in await guest.sees_all("/jobs", batch=bid)] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "id",
    [
        "bid",
        "nope",
        "%2F",
        "a%2Fb%3A_c",
        "bid00000000001",
        "-1",
        "%00",
        "é",
        "b%20c",
        "..%2F",
        "%00%00",
        "x" * 5000,
    ],
)
async def test_a_batch_id_that_is_none_is_unknown(guest: Guest, id: str) -> None:
    for verb, what in (
        ("GET", ""),
        ("GET", "/report"),
        ("POST", "/seal"),
        ("POST", "/hold"),
        ("POST", "/resume"),
        ("POST", "/retry"),
        ("POST", "/update-report"),
        ("DELETE", ""),
    ):
        assert is_problem(await asks(guest, verb, id, what), 404, "unknown-batch"), (verb, what)
    assert is_problem(await asks(guest, "POST", id, "/jobs", json=[body()]), 404, "unknown-batch")
    assert await guest.sees("/jobs", batch=id) == {"items": [], "next": None, "total": 0}


FAULTS: list[tuple[str, Any]] = [
    ("submitter", None),
    ("submitter.type", {"type": "robot", "id": "7"}),
    ("external_id", ""),
    ("external_id", 7),
    ("priority", 105),
    ("priority", -1),
    ("manifest_type", "what"),
    ("response_type", "pdf"),
    ("submission_mode", "what"),
    ("response_url", "ftp://x"),
    ("run", None),
    ("run.handler", {"handler": "7"}),
    ("seal", "yes"),
    ("color", "red"),
    ("erc.who", {"who": 7}),
]


@pytest.mark.parametrize(("path", "value"), FAULTS)
async def test_a_batch_with_a_fault_is_refused_and_nothing_is_stored(
    guest: Guest, path: str, value: object
) -> None:
    sent = {**BATCH, path.partition(".")[0]: value}
    refused = await guest.http.post(f"{guest.url}/batches", json=sent)
    assert is_problem(refused, 422, "invalid"), refused.text
    assert path in [fault["path"] for fault in refused.json()["errors"]]
    assert (await guest.sees("/batches"))["total"] == 0


async def test_a_body_that_is_no_batch_is_refused(guest: Guest) -> None:
    url = f"{guest.url}/batches"
    for sent in ("[]", "7", '"x"', "null"):
        assert is_problem(await guest.http.post(url, content=sent), 422, "invalid"), sent
    assert is_problem(await guest.http.post(url, content="{"), 400, "malformed")
    assert is_problem(await guest.http.post("/api/v1/queues/nope/batches", json=BATCH), 404, "unknown-queue")
    bid = await opens(guest)
    for sent in ("{}", "7", "null"):
        assert is_problem(await asks(guest, "POST", bid, "/jobs", content=sent), 422, "invalid"), sent
    many = await asks(guest, "POST", bid, "/jobs", json=[body()] * 1001)
    assert is_problem(many, 422, "invalid")


async def test_a_job_of_10_megabytes_is_too_large_in_its_place(guest: Guest) -> None:
    bid = await opens(guest)
    large = body("large", run={"handler": "grade", "args": {"x": "x" * 10_000_000}})
    items = (await asks(guest, "POST", bid, "/jobs", json=[large, body("small")])).json()["items"]
    assert (items[0]["status"], items[1]["outcome"]) == (413, "created")
