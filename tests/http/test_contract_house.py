"""The HTTP contract of the line, the floor, batches and workers, row by row, as `test_contract_jobs.py`.

The row of sessions is in `tests/sessions`, where there are terminals.
"""

from maitred.core.settings import SECOND, Settings
from tests.http.guest import Guest, body, is_problem
from tests.http.house import House, until
from tests.http.test_batch_events import fills
from tests.http.test_batches import ADA, BATCH, asks, clerk_works, jobs_end, opens, submits
from tests.http.test_contract_jobs import NEED, kind, paths, starts
from tests.http.test_jobs import FIELDS

__all__ = ["kind"]

ROW = {"id", "key", "local_id", "message"}
HOLD = {"kind", "name", "by", "reason", "at"}


async def test_get_queues_and_queue(guest: Guest) -> None:
    await guest.submits()
    queue = await guest.sees("")
    assert queue["counts"] == {"pending": 1, "processing": 0, "held": 0, "completed": 0, "failed": 0}
    assert queue["classes"] == [{"name": "default", "cap": 600.0, "limit": 0, "running": 0, "used": 0}]
    assert (queue["paused"], queue["held"]) == (False, {"submitters": [], "profiles": []})
    assert queue["settings"]["time_limit"] == 600.0
    assert "waits" in queue
    page = (await guest.http.get("/api/v1/queues", params={"limit": 500})).json()
    assert page.keys() == {"items", "next", "total"}
    assert guest.store.queue in [item["name"] for item in page["items"]]
    assert is_problem(await guest.http.get("/api/v1/queues/nope"), 404, "unknown-queue")


async def test_post_queue_pause_and_resume(guest: Guest) -> None:
    for what, paused in (("/pause", True), ("/pause", True), ("/resume", False), ("/resume", False)):
        answer = await guest.http.post(f"{guest.url}{what}")
        assert (answer.status_code, answer.json()["paused"]) == (200, paused)
    assert paths(await guest.http.post(f"{guest.url}/pause", json={"why": 1})) == ["why"]


async def test_get_line(guest: Guest) -> None:
    for key, delay in (("a", 9), ("b", 5), ("c", 7)):
        await guest.submits(key, f"user:{key}", delay=delay)
    assert [job["key"] for job in await guest.sees_all("/line", limit=1)] == ["b", "c", "a"]
    first = await guest.sees("/line", limit=1)
    assert (first["total"], first["items"][0].keys()) == (3, set(FIELDS))


async def test_get_running(guest: Guest) -> None:
    await guest.submits()
    await starts(guest)
    [job] = (await guest.sees("/running"))["items"]
    assert (job["class"], job["duration"], job["elapsed"], job["worker"]) == ("default", 600.0, 0.0, "w")


async def test_get_submitter(guest: Guest) -> None:
    await guest.store.configure(Settings(per_recent=60 * SECOND))
    job = await guest.submits("a", "team:x")
    shown = await guest.sees("/submitters/team/x")
    place = {"nonce": job["nonce"], "release_at": job["release_at"]}
    assert shown == {"jobs": [job["id"]], "places": [place], "recent": 1, "next_delay": 60.0, "held": False}
    assert (await guest.sees("/submitters/user/nobody"))["jobs"] == []
    assert paths(await guest.http.get(f"{guest.url}/submitters/robot/x")) == ["type"]


async def test_post_submitter_and_profile_hold_and_resume(guest: Guest) -> None:
    for what, listed, name in (
        ("/submitters/user/1", "submitters", "user:1"),
        ("/profiles/p", "profiles", "p"),
    ):
        held = await guest.http.post(f"{guest.url}{what}/hold", json={"reason": "lunch"})
        assert (held.status_code, held.json()["held"]) == (200, True)
        [hold] = (await guest.sees(""))["held"][listed]
        assert (hold.keys(), hold["name"], hold["reason"]) == (HOLD, name, "lunch")
        resumed = await guest.http.post(f"{guest.url}{what}/resume")
        assert (resumed.status_code, resumed.json()["held"]) == (200, False)


async def test_post_batches(guest: Guest) -> None:
    whole = {
        **BATCH,
        "profile_name": "p",
        "payload_filename": "a.csv",
        "manifest_type": "object-manifest",
        "response_type": "json",
        "submission_mode": "add",
        "erc": {"who": "Ada", "what": "files", "when": "2026", "where": "here"},
        "response_url": "http://example.org/",
        "duration": 5,
        "priority": 7,
        "bulk": True,
        "seal": True,
    }
    made = await guest.http.post(f"{guest.url}/batches", json=whole)
    assert (made.status_code, made.json()["state"]) == (201, "pending"), made.text
    kept = {name: value for name, value in whole.items() if name != "payload"}
    assert {name: made.json()[name] for name in kept} == kept
    again = await guest.http.post(f"{guest.url}/batches", json=whole)
    assert (again.status_code, again.json()["id"]) == (200, made.json()["id"])
    other = {**whole, "submitter": {"type": "user", "id": "bob"}}
    assert is_problem(await guest.http.post(f"{guest.url}/batches", json=other), 409, "other-submitter")
    wrong = {"submitter": ADA, "payload": "x", "jobs": [], "class": "x", "seal": 1, "colour": "blue"}
    faults = paths(await guest.http.post(f"{guest.url}/batches", json=wrong))
    assert {"jobs", "class", "seal", "colour"} <= set(faults)
    await clerk_works(guest.store)
    [one, two] = (await guest.sees("/jobs", batch=made.json()["id"]))["items"]
    args = {"assignment": 3, "url": "http://example.org/1.zip", "local_id": "one"}
    assert {name: one["run"]["args"][name] for name in args} == args
    assert (two["priority"], two["bulk"], two["duration"], two["profile_name"]) == (7, True, 5.0, "p")


async def test_post_batch_jobs_and_seal(guest: Guest) -> None:
    bid = await opens(guest)
    added = await asks(guest, "POST", bid, "/jobs", json=[body("a"), {"key": 1}])
    assert added.status_code == 207
    assert [item.get("outcome", item.get("status")) for item in added.json()["items"]] == ["created", 422]
    sealed = await asks(guest, "POST", bid, "/seal")
    assert (sealed.status_code, sealed.json()["sealed"]) == (200, True)
    assert is_problem(await asks(guest, "POST", bid, "/jobs", json=[body("b")]), 409, "sealed")
    assert is_problem(await asks(guest, "POST", "bid9", "/jobs", json=[body()]), 404, "unknown-batch")
    assert is_problem(await asks(guest, "POST", "bid9", "/seal"), 404, "unknown-batch")


async def test_get_batches_batch_and_report(guest: Guest) -> None:
    bid = (await submits(guest))["id"]
    await clerk_works(guest.store)
    await jobs_end(guest.store, "", "error")
    assert is_problem(await asks(guest, "GET", bid, "/report"), 404, "no-report")
    await clerk_works(guest.store)
    batch = (await asks(guest, "GET", bid)).json()
    assert {"id", "external_id", "state", "sealed", "counts", "message", "submitter"} <= batch.keys()
    assert (await guest.sees("/batches", state="failed", external_id=BATCH["external_id"]))["items"] == [
        batch
    ]
    assert (await guest.sees("/batches", state="completed"))["items"] == []
    report = (await asks(guest, "GET", bid, "/report")).json()
    assert {"sequence", "kind", "at", "completed", "failed", "deleted"} <= report.keys()
    assert (report["sequence"], report["kind"], report["deleted"]) == (1, "report", [])
    assert [set(row) for row in report["completed"] + report["failed"]] == [ROW, ROW]
    assert is_problem(await asks(guest, "GET", "bid9"), 404, "unknown-batch")


async def test_get_batch_events(house: House) -> None:
    bid = await fills(house, "a")
    async with house.stream(f"/batches/{bid}/events") as stream:
        await until(stream, "state", state="processing")
        await house.works()
        await house.ends()
        report = await until(stream, "report")
    assert (report.data["sequence"], report.data["completed"], bool(report.id)) == (1, 1, True)
    unknown = await house.guest.http.get(f"{house.guest.url}/batches/bid9/events")
    assert is_problem(unknown, 404, "unknown-batch")


async def test_post_batch_hold_resume_retry_update_report_and_delete(guest: Guest) -> None:
    bid = await opens(guest)
    await guest.submits("a", batch=bid)
    held = await asks(guest, "POST", bid, "/hold", json={"reason": "lunch"})
    assert (held.status_code, held.json()["state"], held.json()["holds"][0]["reason"]) == (
        200,
        "held",
        "lunch",
    )
    assert (await asks(guest, "POST", bid, "/resume")).status_code == 200
    assert is_problem(await asks(guest, "POST", bid, "/resume"), 409, "not-held")
    assert is_problem(await asks(guest, "POST", bid, "/update-report"), 409, "illegal-move")
    assert is_problem(await asks(guest, "DELETE", bid), 409, "unfinished")
    await asks(guest, "POST", bid, "/seal")
    await jobs_end(guest.store, "error")
    assert is_problem(await asks(guest, "POST", bid, "/retry"), 409, "reporting")
    await clerk_works(guest.store)
    assert is_problem(await asks(guest, "POST", bid, "/hold"), 409, "illegal-move")
    assert (await asks(guest, "POST", bid, "/retry")).json() == {"batch": bid, "retried": 1}
    await jobs_end(guest.store, "")
    updating = await asks(guest, "POST", bid, "/update-report")
    assert (updating.status_code, updating.json()["state"]) == (200, "update-reporting")
    await clerk_works(guest.store)
    assert (await asks(guest, "GET", bid, "/report")).json()["kind"] == "update-report"
    assert (await asks(guest, "DELETE", bid)).status_code == 204
    assert is_problem(await asks(guest, "DELETE", bid), 404, "unknown-batch")


async def test_get_workers(guest: Guest) -> None:
    await guest.store.join("w", 3, [NEED], b'{"sandbox": ["network"]}')
    [worker] = (await guest.sees("/workers"))["items"]
    assert (worker["slots"], worker["serves"], worker["sandbox"]) == (3, [NEED], ["network"])
    assert worker["last_seen"].endswith("Z")


async def test_get_events(house: House) -> None:
    async with house.everything() as stream:
        await until(stream, "queue")
        id = (await house.guest.submits())["id"]
        state = await until(stream, "state")
        assert (state.data["queue"], state.data["id"]) == (house.store.queue, id)
    await house.guest.asks("DELETE", id)
    async with house.everything(last=state.id) as stream:
        assert (await until(stream, "state")).data["state"] == "deleted"


async def test_get_audit(guest: Guest) -> None:
    id = (await guest.submits())["id"]
    await guest.asks("POST", id, "/cancel")
    page = (await guest.http.get("/api/v1/audit", params={"limit": 2})).json()
    assert page.keys() == {"items", "next", "total"}
    cancelled, submitted = page["items"]
    assert (cancelled["by"], cancelled["queue"], cancelled["subject"]) == ("local", guest.store.queue, id)
    assert cancelled["action"] == "POST /api/v1/queues/{queue}/jobs/{id}/cancel"
    assert (submitted["subject"], submitted["status"], submitted["at"][-1]) == (id, 201, "Z")


async def test_get_post_delete_and_rotate_keys(guest: Guest) -> None:
    made = await guest.http.post("/api/v1/keys", json={"role": "admin"})
    key, id = made.json()["key"], made.json()["id"]
    assert made.status_code == 201
    assert is_problem(await guest.http.get("/api/v1/keys"), 401, "unauthorized")
    guest.http.headers["Authorization"] = f"Bearer {key}"
    listed = (await guest.http.get("/api/v1/keys")).json()
    assert id in [item["id"] for item in listed["items"]]
    assert key not in str(listed)
    other = (
        await guest.http.post("/api/v1/keys", json={"role": "submitter", "submitters": ["user:1"]})
    ).json()
    rotated = await guest.http.post(f"/api/v1/keys/{other['id']}/rotate")
    assert (rotated.status_code, len(rotated.json()["secrets"])) == (200, 2)
    assert rotated.json()["key"] not in (None, other["key"])
    assert (await guest.http.delete(f"/api/v1/keys/{other['id']}")).status_code == 204
    assert is_problem(await guest.http.delete("/api/v1/keys/nobody"), 404, "unknown-key")
    assert paths(await guest.http.post("/api/v1/keys", json={"role": "cook"})) == ["role"]
    viewer = (await guest.http.post("/api/v1/keys", json={"role": "viewer"})).json()["key"]
    guest.http.headers["Authorization"] = f"Bearer {viewer}"
    assert is_problem(await guest.http.get("/api/v1/keys"), 403, "forbidden")
    assert is_problem(await guest.puts(body()), 403, "forbidden")


async def test_post_check_and_reconcile(guest: Guest) -> None:
    found = await guest.http.post(f"{guest.url}/check")
    assert (found.status_code, found.json()) == (200, {"queue": guest.store.queue, "violations": []})
    done = await guest.http.post(f"{guest.url}/reconcile")
    assert (done.status_code, done.json()["changes"]) == (200, [])


async def test_get_healthz_readyz_and_metrics(guest: Guest) -> None:
    assert (await guest.http.get("/healthz")).json() == {"status": "ok"}
    assert (await guest.http.get("/readyz")).json() == {"status": "ready", "workers": []}
    metrics = await guest.http.get("/metrics")
    assert (metrics.status_code, "maitred_store_up 1.0" in metrics.text) == (200, True)
    assert metrics.headers["content-type"].startswith("text/plain")
