"""Holds, priorities and retries over HTTP: what is held says by whom and why, and goes on where it was."""

import pytest

from maitred.core.job import Finish
from maitred.core.settings import MINUTE, Settings
from tests.http.guest import Guest, body, is_problem

NEED = "handler:grade"


async def test_a_held_job_leaves_the_line_says_why_and_comes_back(guest: Guest) -> None:
    first = (await guest.submits("a", "user:1"))["id"]
    await guest.submits("b", "user:2")
    held = (await guest.asks("POST", first, "/hold", json={"reason": "the disk is full"})).json()
    assert (held["state"], held["phase"], held["position"]) == ("held", None, None)
    [hold] = held["holds"]
    assert (hold["kind"], hold["name"], hold["by"]) == ("job", first, "admin")
    assert hold["reason"] == "the disk is full"
    assert [job["key"] for job in (await guest.sees("/line"))["items"]] == ["b"]
    back = (await guest.asks("POST", first, "/resume")).json()
    assert (back["state"], back["phase"], back["holds"], back["position"]) == ("pending", "waiting", [], 1)


async def test_held_jobs_are_listed_and_found_by_their_state(guest: Guest) -> None:
    ids = [(await guest.submits(key, f"user:{key}"))["id"] for key in "abcde"]
    for id in ids[1:4]:
        await guest.asks("POST", id, "/hold")
    for limit in (1, 2, 50):
        found = await guest.sees_all("/jobs", state="held", limit=limit)
        assert [job["key"] for job in found] == ["b", "c", "d"], limit
        every = await guest.sees_all("/jobs", limit=limit)
        assert [job["key"] for job in every] == ["a", "e", "b", "c", "d"], limit
    assert (await guest.sees("/jobs", state="held"))["total"] == 3
    assert (await guest.sees(""))["counts"]["held"] == 3


async def test_only_a_job_that_is_held_itself_can_be_resumed(guest: Guest) -> None:
    id = (await guest.submits())["id"]
    assert is_problem(await guest.asks("POST", id, "/resume"), 409, "not-held")
    await guest.asks("POST", id, "/cancel")
    assert is_problem(await guest.asks("POST", id, "/hold"), 409, "ended")
    for what in ("/hold", "/resume", "/retry"):
        assert is_problem(await guest.asks("POST", "nobody", what), 404, "unknown-job")


async def test_a_held_submitter_is_named_and_none_of_its_jobs_starts(guest: Guest) -> None:
    url = f"{guest.url}/submitters/user/a%2Fb%3A_c"
    await guest.submits("mine", "user:a/b:_c")
    await guest.submits("other", "user:2")
    held = (await guest.http.post(f"{url}/hold", json={"reason": "too many"})).json()
    assert (held["held"], len(held["jobs"])) == (True, 1)
    [named] = (await guest.sees(""))["held"]["submitters"]
    assert (named["name"], named["by"], named["reason"]) == ("user:a/b:_c", "admin", "too many")
    shift = await guest.store.join("w", 2, [NEED])
    assert [start.id for start in shift.starts] == [(await guest.sees_all("/jobs", key="other"))[0]["id"]]
    [mine] = await guest.sees_all("/jobs", key="mine")
    assert mine["state"] == "held"
    assert [hold["kind"] for hold in mine["holds"]] == ["submitter"]
    resumed = (await guest.http.post(f"{url}/resume")).json()
    assert not resumed["held"]
    assert (await guest.sees(""))["held"] == {"submitters": [], "profiles": []}
    [mine] = await guest.sees_all("/jobs", key="mine")
    assert mine["state"] == "processing"


async def test_a_held_profile_is_named_and_goes_on(guest: Guest) -> None:
    await guest.submits("a", profile_name="nightly")
    held = (await guest.http.post(f"{guest.url}/profiles/nightly/hold", json={"reason": "why not"})).json()
    assert (held["name"], held["held"], held["hold"]["reason"]) == ("nightly", True, "why not")
    assert [hold["name"] for hold in (await guest.sees(""))["held"]["profiles"]] == ["nightly"]
    assert not (await guest.store.join("w", 1, [NEED])).starts
    resumed = (await guest.http.post(f"{guest.url}/profiles/nightly/resume")).json()
    assert resumed == {"name": "nightly", "held": False, "hold": None}
    [job] = await guest.sees_all("/jobs")
    assert (job["state"], job["profile_name"]) == ("processing", "nightly")


async def test_a_profile_that_the_queue_does_not_have_cannot_be_held(guest: Guest) -> None:
    await guest.store.configure(Settings(profiles=("nightly",)))
    assert is_problem(await guest.http.post(f"{guest.url}/profiles/what/hold"), 404, "not-found")
    assert (await guest.http.post(f"{guest.url}/profiles/nightly/hold")).status_code == 200


async def test_a_waiting_job_gets_another_priority(guest: Guest) -> None:
    first = (await guest.submits("a", "user:1"))["id"]
    await guest.submits("b", "user:2")
    moved = (await guest.asks("POST", first, "/priority", json={"priority": 15})).json()
    assert (moved["priority"], moved["position"]) == (15, 2)
    assert [job["key"] for job in (await guest.sees("/line"))["items"]] == ["b", "a"]
    await guest.asks("POST", first, "/cancel")
    refused = await guest.asks("POST", first, "/priority", json={"priority": 1})
    assert is_problem(refused, 409, "not-waiting")


@pytest.mark.parametrize("sent", [105, -1, 5.5, "5", None, True, [5]])
async def test_a_priority_is_a_whole_number_from_0_to_99(guest: Guest, sent: object) -> None:
    id = (await guest.submits())["id"]
    before = await guest.store.snapshot()
    refused = await guest.asks("POST", id, "/priority", json={"priority": sent})
    assert is_problem(refused, 422, "invalid")
    assert refused.json()["errors"] == [
        {"path": "priority", "message": "must be a whole number from 0 to 99"}
    ]
    assert await guest.store.snapshot() == before


async def test_a_failed_job_is_retried_and_no_other(guest: Guest) -> None:
    await guest.store.configure(Settings(lease=60 * MINUTE))
    id = (await guest.submits())["id"]
    assert is_problem(await guest.asks("POST", id, "/retry"), 409, "not-failed")
    [start] = (await guest.store.join("w", 1, [NEED])).starts
    await guest.store.pause("ann", "")
    await guest.store.finish("w", [Finish(start.lease, "error", "no such file")])
    retried = (await guest.asks("POST", id, "/retry", json={"reason": "it is there now"})).json()
    assert (retried["state"], retried["phase"], retried["retry_count"]) == ("processing", "waiting", 1)
    assert (retried["code"], retried["message"]) == (None, None)
    [found] = await guest.sees_all("/jobs", state="processing")
    assert found["id"] == id


@pytest.mark.parametrize(
    "path",
    [
        "jobs/x/hold",
        "jobs/x/resume",
        "jobs/x/retry",
        "submitters/user/1/hold",
        "profiles/p/hold",
        "reconcile",
    ],
)
async def test_a_reason_is_text_and_nothing_else_is_taken(guest: Guest, path: str) -> None:
    for sent in ('{"reason": 7}', '{"raeson": "x"}', "[]", '"x"', '{"reason": "' + "x" * 1001 + '"}'):
        refused = await guest.http.post(f"{guest.url}/{path}", content=sent)
        assert is_problem(refused, 422, "invalid"), sent
    assert is_problem(await guest.http.post(f"{guest.url}/{path}", content="{"), 400, "malformed")
    large = await guest.http.post(f"{guest.url}/{path}", content='{"reason": "' + "x" * 10_000_000 + '"}')
    assert is_problem(large, 413, "too-large")


async def test_a_type_of_submitter_that_is_none_is_a_fault(guest: Guest) -> None:
    assert is_problem(await guest.http.post(f"{guest.url}/submitters/robot/1/hold"), 422, "invalid")


async def test_a_queue_whose_ledger_is_in_its_store_has_nothing_to_reconcile(guest: Guest) -> None:
    await guest.puts(body())
    answer = await guest.http.post(f"{guest.url}/reconcile")
    assert answer.json() == {"queue": guest.store.queue, "ledger": None, "changes": []}
    assert is_problem(await guest.http.post("/api/v1/queues/nope/reconcile"), 404, "unknown-queue")


async def test_a_job_that_came_back_to_a_place_of_its_own_is_found_by_its_submitter(guest: Guest) -> None:
    ids = [(await guest.submits(key, "user:1"))["id"] for key in "abc"]
    await guest.asks("POST", ids[0], "/hold")
    await guest.asks("POST", ids[0], "/resume")
    await guest.asks("POST", ids[1], "/hold")
    found = await guest.sees_all("/jobs", submitter="user:1", limit=1)
    assert sorted(job["key"] for job in found) == ["a", "b", "c"]
    assert {job["key"]: job["state"] for job in found}["b"] == "held"
