"""The HTTP contract of jobs, row by row: each test is named after the calls of its row.

Other tests say more of most rows. Here stands that every status and field of the row is as it is written.
"""

from typing import Any
from urllib.parse import quote

import httpx
import pytest

from maitred.core.classes import DurationClass
from maitred.core.job import Finish, Start
from maitred.core.notices import Delivery
from maitred.core.output import Artifact, Part, Saying
from maitred.core.settings import MINUTE, SECOND, Settings
from tests.http.guest import Guest, body, is_problem
from tests.http.house import House, until
from tests.http.test_jobs import FIELDS

NEED = "handler:grade"
CLASSES = (DurationClass("fast", 3 * SECOND), DurationClass("slow", 30 * SECOND))


@pytest.fixture(params=["memory", "valkey"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def starts(guest: Guest, **more: Any) -> Start:
    """Let one job run; give its start."""
    await guest.store.configure(Settings(lease=60 * MINUTE, **more))
    [start] = (await guest.store.join("w", 1, [NEED])).starts
    return start


async def refuses(guest: Guest, id: str, what: str, code: str, sent: object = None) -> None:
    """See that a call is refused with a conflict that says why."""
    answer = await guest.asks("POST", id, what, json=sent)
    assert is_problem(answer, 409, code), (what, answer.text)


def paths(answer: httpx.Response) -> list[str]:
    """Give the paths of the faults of an answer."""
    assert is_problem(answer, 422, "invalid"), answer.text
    assert all(fault.keys() == {"path", "message"} for fault in answer.json()["errors"])
    return [fault["path"] for fault in answer.json()["errors"]]


async def test_errors_are_problems(guest: Guest) -> None:
    assert is_problem(await guest.http.put(f"{guest.url}/jobs", content=b"{nope"), 400, "malformed")
    assert is_problem(await guest.http.get("/api/v1/nowhere"), 404, "no-such-route")
    assert is_problem(await guest.http.patch(f"{guest.url}/jobs"), 405, "no-such-method")
    sent = {"key": 7, "submitter": {"type": "robot", "id": ""}, "colour": "blue", "run": {"handler": "1 2"}}
    assert sorted(paths(await guest.puts(sent))) == [
        "colour",
        "key",
        "run.handler",
        "submitter.id",
        "submitter.type",
    ]


@pytest.mark.parametrize("run", [{}, {"command": []}, {"script": "x"}, {"handler": 7}, {"what": 1}, [], None])
async def test_one_fault_of_run_is_one_entry(guest: Guest, run: object) -> None:
    [path] = paths(await guest.puts(body(run=run)))
    assert path.partition(".")[0] == "run"


@pytest.mark.parametrize("what", ["/jobs", "/line", "/running", "/workers", "/batches"])
async def test_lists_have_items_next_and_total(guest: Guest, what: str) -> None:
    page = await guest.sees(what, limit=500)
    assert page == {"items": [], "next": None, "total": 0}
    for limit in (0, 501, "x"):
        assert paths(await guest.http.get(f"{guest.url}{what}", params={"limit": limit})) == ["limit"]
    assert paths(await guest.http.get(f"{guest.url}{what}", params={"cursor": "x"})) == ["cursor"]


async def test_parameters_may_be_left_empty(guest: Guest) -> None:
    id = (await guest.submits())["id"]
    for what in (
        "/jobs?state=&key=&submitter=&batch=&cursor=&limit=",
        f"/jobs/{id}?version=",
        f"/jobs/{id}/output?stream=&from=",
        "/line?cursor=&limit=",
        "/batches?state=&external_id=",
    ):
        answer = await guest.http.get(f"{guest.url}{what}")
        assert answer.status_code == 200, (what, answer.text)


async def test_ids_in_paths_may_hold_a_slash(guest: Guest) -> None:
    name = "a/b c%/é"
    await guest.submits("k", f"team:{name}", profile_name=name)
    shown = await guest.sees(f"/submitters/team/{quote(name, safe='')}")
    assert len(shown["jobs"]) == 1
    held = await guest.http.post(f"{guest.url}/profiles/{quote(name, safe='')}/hold")
    assert (held.status_code, held.json()["name"]) == (200, name)
    assert is_problem(await guest.asks("GET", "a/b"), 404, "unknown-job")


async def test_put_jobs(guest: Guest) -> None:
    await guest.store.configure(Settings(max_total=2, max_body=2000, classes=CLASSES))
    new = await guest.puts(body("a", duration=2))
    assert (new.status_code, new.json()["outcome"]) == (201, "created")
    assert new.json().keys() == {*FIELDS, "outcome"}
    assert is_problem(await guest.puts(body("a", "user:2")), 409, "other-submitter")
    assert is_problem(await guest.puts(body("a", duration=20)), 409, "longer-duration")
    assert is_problem(await guest.puts(body("b", metadata={"x": "x" * 2000})), 413, "too-large")
    same = await guest.puts(body("a", duration=2))
    assert (same.status_code, same.json()["outcome"]) == (200, "updated")
    assert (await guest.puts(body("b", bulk=True))).status_code == 201
    full = await guest.puts(body("c"))
    assert is_problem(full, 429, "full")
    assert full.json()["limit"] == 2
    lifted = await guest.puts(body("b"))
    assert (lifted.status_code, lifted.json()["outcome"]) == (200, "upgraded")
    await guest.store.join("w", 1, [NEED])
    version = await guest.puts(body("b"))
    assert (version.status_code, version.json()["outcome"]) == (200, "next-version")
    assert (version.json()["version"], version.json()["running_versions"]) == (2, [1])
    await guest.asks("POST", version.json()["id"], "/cancel")
    afresh = await guest.puts(body("b"))
    assert (afresh.status_code, afresh.json()["outcome"]) == (201, "created")


async def test_post_jobs_many(guest: Guest) -> None:
    sent = [body("a"), {"key": ""}, body("a"), 7, body("a", "user:2")]
    answer = await guest.http.post(f"{guest.url}/jobs/many", json=sent)
    assert answer.status_code == 207
    assert answer.json().keys() == {"items"}
    items = answer.json()["items"]
    assert [item.get("outcome", item.get("status")) for item in items] == [
        "created",
        422,
        "updated",
        422,
        409,
    ]
    assert items[0].keys() == {*FIELDS, "outcome"}
    assert items[1].keys() == {"type", "title", "status", "detail", "errors"}
    assert paths(await guest.http.post(f"{guest.url}/jobs/many", json={"items": []})) == [""]
    assert paths(await guest.http.post(f"{guest.url}/jobs/many", json=[1] * 1001)) == [""]


async def test_get_jobs(guest: Guest) -> None:
    for number in range(3):
        await guest.submits(f"k{number}", f"user:{number}", metadata={"course": f"cs{number}"})
    for query in ({"key": "k1"}, {"submitter": "user:1"}, {"metadata.course": "cs1"}):
        assert [job["key"] for job in (await guest.sees("/jobs", **query))["items"]] == ["k1"]
    assert (await guest.sees("/jobs", state="pending", limit=2))["total"] == 3
    assert len(await guest.sees_all("/jobs", state="pending", limit=2)) == 3
    assert (await guest.sees("/jobs", batch="bid0000000000"))["items"] == []
    assert (await guest.sees("/jobs"))["items"][0].keys() == set(FIELDS)


async def test_get_job(guest: Guest) -> None:
    id = (await guest.submits(delay=5))["id"]
    document = (await guest.asks("GET", id)).json()
    assert document.keys() == set(FIELDS)
    assert (document["version"], document["delay"], document["position"]) == (1, 5.0, 1)
    assert document["waiting_for"].keys() == {"code", "text"}
    assert document["release_at"] == "1970-01-01T00:16:45.000000Z"
    assert (await guest.asks("GET", id, "?version=1")).json() == document
    for wrong in (await guest.asks("GET", id, "?version=2"), await guest.asks("GET", "nobody")):
        assert is_problem(wrong, 404, "unknown-job")
    await guest.asks("POST", id, "/release")
    assert (await guest.asks("GET", id)).json()["nonce"] is None
    start = await starts(guest)
    await guest.store.finish("w", [Finish(start.lease)])
    ended = (await guest.asks("GET", id)).json()
    assert ended["timeline"][0].keys() == {"stage", "version", "attempt", "worker", "start", "end", "code"}
    assert (ended["state"], ended["phase"], ended["position"]) == ("completed", None, None)


async def test_delete_job(guest: Guest) -> None:
    waiting, held, ended = [(await guest.submits(key))["id"] for key in "abc"]
    await guest.asks("POST", held, "/hold")
    await guest.asks("POST", ended, "/cancel")
    running = (await guest.submits("d", immediate=True))["id"]
    await starts(guest)
    for id in (waiting, held, ended, running):
        assert (await guest.asks("DELETE", id)).status_code == 204
        assert is_problem(await guest.asks("DELETE", id), 404, "unknown-job")
    assert is_problem(await guest.asks("DELETE", "nobody"), 404, "unknown-job")


async def test_post_job_release_and_delay(guest: Guest) -> None:
    for what in ("/release", "/delay"):
        job = await guest.submits(f"a{what}", f"user:{what}")
        await refuses(guest, job["id"], what, "other-nonce", {"nonce": job["nonce"] + 1})
        moved = await guest.asks("POST", job["id"], what, json={"nonce": job["nonce"]})
        assert (moved.status_code, moved.json().keys()) == (200, set(FIELDS))
        other = await guest.submits(f"b{what}", f"user:{what}")
        assert (await guest.asks("POST", other["id"], what)).status_code == 200
        immediate = (await guest.submits(f"c{what}", immediate=True))["id"]
        await refuses(guest, immediate, what, "not-movable")
        await guest.asks("POST", immediate, "/cancel")
        await refuses(guest, immediate, what, "not-waiting")
        assert is_problem(await guest.asks("POST", "nobody", what), 404, "unknown-job")
    front = (await guest.sees("/line"))["items"][0]
    assert front["band"] == "front"
    await refuses(guest, front["id"], "/release", "not-movable")
    await refuses(guest, front["id"], "/delay", "not-movable")


async def test_post_job_duration_and_priority(guest: Guest) -> None:
    await guest.store.configure(Settings(classes=CLASSES))
    id = (await guest.submits(duration=20))["id"]
    shorter = await guest.asks("POST", id, "/duration", json={"seconds": 10})
    assert (shorter.status_code, shorter.json()["duration"]) == (200, 10.0)
    await refuses(guest, id, "/duration", "longer-duration", {"seconds": 11})
    first = await guest.asks("POST", id, "/priority", json={"priority": 0})
    assert (first.status_code, first.json()["priority"]) == (200, 0)
    await starts(guest, classes=CLASSES)
    assert (await guest.asks("POST", id, "/duration", json={"seconds": 2})).json()["duration"] == 2.0
    await refuses(guest, id, "/duration", "longer-duration", {"seconds": 3})
    await refuses(guest, id, "/priority", "not-waiting", {"priority": 1})
    for what, path in (("/duration", "seconds"), ("/priority", "priority")):
        assert paths(await guest.asks("POST", id, what, json={})) == [path]
        assert is_problem(await guest.asks("POST", id, what), 400, "malformed")
    await guest.asks("POST", id, "/cancel")
    await refuses(guest, id, "/duration", "ended", {"seconds": 1})


async def test_post_job_hold_resume_retry_cancel(guest: Guest) -> None:
    id = (await guest.submits())["id"]
    for what, code in (("/resume", "not-held"), ("/retry", "not-failed")):
        await refuses(guest, id, what, code)
    why = {"reason": "lunch"}
    held = (await guest.asks("POST", id, "/hold", json=why)).json()
    assert (held["state"], held["phase"], held["holds"][0]["reason"]) == ("held", None, "lunch")
    assert held["holds"][0].keys() == {"kind", "name", "by", "reason", "at"}
    resumed = await guest.asks("POST", id, "/resume", json=why)
    assert (resumed.status_code, resumed.json()["state"], resumed.json()["nonce"]) == (200, "pending", None)
    ended = (await guest.asks("POST", id, "/cancel", json=why)).json()
    assert (ended["state"], ended["code"], "lunch" in ended["message"]) == ("failed", "cancelled", True)
    for what in ("/cancel", "/hold"):
        await refuses(guest, id, what, "ended")
    retried = await guest.asks("POST", id, "/retry", json=why)
    assert (retried.status_code, retried.json()["phase"], retried.json()["retry_count"]) == (
        200,
        "waiting",
        1,
    )
    for what in ("/hold", "/resume", "/retry", "/cancel"):
        assert paths(await guest.asks("POST", id, what, json={"why": 1})) == ["why"]
        assert is_problem(await guest.asks("POST", "nobody", what), 404, "unknown-job")


async def test_get_job_events(house: House) -> None:
    id = (await house.guest.submits())["id"]
    async with house.watching(id) as stream:
        state = await until(stream, "state", state="pending")
        place = await until(stream, "place")
        assert place.id is None
        assert place.data.keys() == {"position", "estimate", "waiting_for"}
        await house.works()
        await until(stream, "state", phase="running")
        await house.store.say("w", [Saying(house.held[0].lease, (Part("stdout", b"hello"),))])
        assert (await until(stream, "output")).data["text"] == "hello"
        await house.ends()
        result = await until(stream, "result")
    async with house.watching(id, state.id) as again:
        assert [event.name async for event in again if event.id] == ["state", "output", "state", "result"]
    url = f"{house.guest.url}/jobs/{id}/events"
    over = await house.guest.http.get(url, headers={"Last-Event-ID": result.id or ""})
    assert over.status_code == 204
    async with house.watching(id, "not an id") as lost:
        await until(lost, "reset")
    assert is_problem(await house.guest.asks("GET", "nobody", "/events"), 404, "unknown-job")


async def test_get_job_output_and_artifact(guest: Guest) -> None:
    id = (await guest.submits())["id"]
    start = await starts(guest)
    await guest.store.say("w", [Saying(start.lease, (Part("stdout", b"out"), Part("stderr", b"err")))])
    for query, texts in (("", ["out", "err"]), ("?stream=stderr", ["err"]), ("?from=2", ["err"])):
        shown = (await guest.asks("GET", id, f"/output{query}")).json()
        assert [piece["text"] for piece in shown["items"]] == texts
    assert paths(await guest.asks("GET", id, "/output?stream=x")) == ["stream"]
    assert paths(await guest.asks("GET", id, "/output?from=0")) == ["from"]
    await guest.store.keep("w", start.lease, [Artifact("a/b.txt", "text/plain", b"made")])
    [listed] = (await guest.asks("GET", id)).json()["artifacts"]
    assert listed == {"name": "a/b.txt", "content_type": "text/plain", "size": 4}
    found = await guest.asks("GET", id, "/artifacts/a%2Fb.txt?version=1")
    assert (found.status_code, found.content) == (200, b"made")
    assert is_problem(await guest.asks("GET", id, "/artifacts/nothing"), 404, "unknown-artifact")
    for what in ("/output", "/artifacts/a%2Fb.txt"):
        assert is_problem(await guest.asks("GET", id, f"{what}?version=2"), 404, "unknown-job")


async def test_get_job_deliveries(guest: Guest) -> None:
    id = (await guest.submits(response_url="http://example.org/"))["id"]
    await starts(guest)
    [(view, notice)] = await guest.store.lock_notices("test", b"t" * 16, 1)
    tried = Delivery(notice.number, "started", view.now, 1, "sent", "200", 1500, 0)
    await guest.store.told_notice(view.job.record, notice.number, b"t" * 16, tried)
    page = await guest.sees(f"/jobs/{id}/deliveries")
    assert (page["total"], page["next"], page["items"][0]["type"]) == (1, None, "job.started")
    assert is_problem(await guest.asks("GET", "nobody", "/deliveries"), 404, "unknown-job")
