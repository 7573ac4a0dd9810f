"""Lists over HTTP: their order, their pages and their filters."""

import pytest

from maitred.core.job import Finish
from maitred.core.settings import MINUTE, Settings
from tests.http.guest import Guest, body, is_problem


async def busy(guest: Guest) -> dict[str, list[str]]:
    """Make a queue with jobs of every kind: two ended, two running, five waiting."""
    await guest.store.configure(Settings(lease=60 * MINUTE))
    for number in range(9):
        course = {"course": "cs101" if number % 2 else "cs102"}
        await guest.submits(f"k{number}", f"user:{number % 4}", metadata=course, priority=number)
    shift = await guest.store.join("w", 2, ["handler:grade"])
    done = await guest.store.finish(
        "w",
        [Finish(shift.starts[0].lease), Finish(shift.starts[1].lease, code="error", message="no such file")],
    )
    assert len(done.starts) == 2
    return {"running": ["k2", "k3"], "waiting": ["k4", "k5", "k6", "k7", "k8"], "ended": ["k1", "k0"]}


async def test_the_list_has_running_then_waiting_then_ended_last_first(guest: Guest) -> None:
    keys = await busy(guest)
    for limit in (1, 2, 3, 7, 9, 50):
        items = await guest.sees_all("/jobs", limit=limit)
        assert [item["key"] for item in items] == keys["running"] + keys["waiting"] + keys["ended"], limit


async def test_a_page_has_its_items_the_total_and_no_next_at_the_end(guest: Guest) -> None:
    await busy(guest)
    whole = await guest.sees("/jobs", limit=9)
    assert (len(whole["items"]), whole["next"], whole["total"]) == (9, None, 9)
    part = await guest.sees("/jobs", limit=4)
    assert (len(part["items"]), part["total"]) == (4, 9)
    assert part["next"]


async def test_jobs_are_found_by_state(guest: Guest) -> None:
    keys = await busy(guest)
    for state, expected in (
        ("pending", keys["waiting"]),
        ("processing", keys["running"]),
        ("completed", ["k0"]),
        ("failed", ["k1"]),
        ("held", []),
    ):
        items = await guest.sees_all("/jobs", state=state, limit=2)
        assert [item["key"] for item in items] == expected, state


async def test_jobs_are_found_by_key_submitter_and_metadata(guest: Guest) -> None:
    await busy(guest)
    [job] = await guest.sees_all("/jobs", key="k5")
    assert job["key"] == "k5"
    mine = await guest.sees_all("/jobs", submitter="user:1", limit=1)
    assert [item["key"] for item in mine] == ["k5", "k1"]
    course = await guest.sees("/jobs", **{"metadata.course": "cs101", "limit": 2})
    assert course["total"] == 4
    both = await guest.sees_all("/jobs", **{"metadata.course": "cs101", "submitter": "user:3", "limit": 1})
    assert [item["key"] for item in both] == ["k3", "k7"]


async def test_a_search_reads_a_bounded_part_per_request_and_goes_on(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    await busy(guest)
    monkeypatch.setattr("maitred.service.listing.SEARCH_STEP", 2)
    monkeypatch.setattr("maitred.service.listing.MOST_SEARCHED", 3)
    page = await guest.sees("/jobs", submitter="user:0")
    assert (page["total"], bool(page["next"])) == (None, True)
    for limit in (1, 2, 50):
        found = await guest.sees_all("/jobs", submitter="user:0", limit=limit)
        assert [item["key"] for item in found] == ["k4", "k8", "k0"], limit


async def test_a_state_is_looked_for_where_its_jobs_are_and_counted_by_the_store(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    await busy(guest)
    monkeypatch.setattr("maitred.service.listing.SEARCH_STEP", 1)
    monkeypatch.setattr("maitred.service.listing.MOST_SEARCHED", 2)
    for state, total in (("pending", 5), ("processing", 2), ("completed", 1), ("failed", 1), ("held", 0)):
        page = await guest.sees("/jobs", state=state, limit=1)
        assert (page["total"], len(page["items"])) == (total, min(total, 1)), state
        assert bool(page["next"]) == (total > 1), state


async def test_a_job_that_was_handed_back_is_found_by_its_stage(guest: Guest) -> None:
    keys = await busy(guest)
    [first, _] = await guest.store.running()
    lease = (await guest.store.renew("w", [])).starts[0].lease
    await guest.store.pause("ann", "")
    await guest.store.hand_back("w", [lease])
    found = await guest.sees_all("/jobs", state="processing", limit=1)
    assert [job["key"] for job in found] == [keys["running"][1], keys["running"][0]]
    assert found[1]["id"] == first.job.id


async def test_in_a_large_queue_a_key_is_found_at_once_and_its_namesakes_by_reading_on(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    await busy(guest)
    monkeypatch.setattr("maitred.service.listing.SEARCH_STEP", 2)
    monkeypatch.setattr("maitred.service.listing.MOST_SEARCHED", 4)
    await guest.submits("k8", "user:0", response_url="http://example.org/")
    page = await guest.sees("/jobs", key="k8")
    assert [(job["key"], job["response_url"]) for job in page["items"]] == [("k8", None)]
    found = await guest.sees_all("/jobs", key="k8")
    assert [job["response_url"] for job in found] == [None, "http://example.org/"]
    assert await guest.sees_all("/jobs", key="nobody") == []


async def test_a_submitters_jobs_are_found_in_a_long_line_and_in_its_order(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    await busy(guest)
    for number in range(20):
        await guest.submits(f"other{number}", "user:99", priority=4)
    monkeypatch.setattr("maitred.service.listing.MOST_SEARCHED", 9)
    page = await guest.sees("/jobs", submitter="user:0")
    assert ([job["key"] for job in page["items"]], page["total"]) == (["k4", "k8", "k0"], 3)
    monkeypatch.setattr("maitred.service.listing.MOST_OF_SUBMITTER", 1)
    for limit in (1, 2, 50):
        found = await guest.sees_all("/jobs", submitter="user:0", limit=limit)
        assert [job["key"] for job in found] == ["k4", "k8", "k0"], limit


async def test_nothing_is_in_a_batch_while_there_are_none(guest: Guest) -> None:
    await busy(guest)
    assert await guest.sees("/jobs", batch="b1") == {"items": [], "next": None, "total": 0}


async def test_a_cursor_of_another_list_is_refused(guest: Guest) -> None:
    await busy(guest)
    running = (await guest.sees("/jobs", limit=1))["next"]
    answer = await guest.http.get(f"{guest.url}/jobs", params={"state": "completed", "cursor": running})
    assert is_problem(answer, 422, "invalid")


async def test_running_jobs_workers_and_queues_come_in_pages_too(guest: Guest) -> None:
    keys = await busy(guest)
    for name in ("v", "x"):
        await guest.store.join(name, 1, ["command"])
    page = await guest.sees("/running", limit=1)
    assert ([job["key"] for job in page["items"]], page["total"]) == (keys["running"][:1], 2)
    assert [job["key"] for job in await guest.sees_all("/running", limit=1)] == keys["running"]
    names = [worker["name"] for worker in await guest.sees_all("/workers", limit=2)]
    assert sorted(names) == ["v", "w", "x"]
    queues = (await guest.http.get("/api/v1/queues", params={"limit": 1})).json()
    assert (len(queues["items"]), queues["total"] >= 1) == (1, True)


@pytest.mark.parametrize(
    "what", ["", "/line", "/running", "/workers", "/jobs", "/jobs/x", "/submitters/user/1"]
)
async def test_a_parameter_that_nobody_knows_is_a_fault_everywhere(guest: Guest, what: str) -> None:
    answer = await guest.http.get(f"{guest.url}{what}", params={"colour": "red"})
    assert is_problem(answer, 422, "invalid")
    assert [fault["path"] for fault in answer.json()["errors"]] == ["colour"]


async def test_parameters_that_are_empty_ask_for_nothing(guest: Guest) -> None:
    await busy(guest)
    page = await guest.sees("/jobs", state="", key="", submitter="", batch="", cursor="")
    assert page["total"] == 9


async def test_a_job_is_listed_once_as_its_newest_version(guest: Guest) -> None:
    await guest.store.configure(Settings(lease=60 * MINUTE))
    for _ in range(3):
        await guest.submits("again")
        shift = await guest.store.join("w", 1, ["handler:grade"])
        await guest.store.finish("w", [Finish(start.lease) for start in shift.starts])
        await guest.store.leave("w")
    await guest.submits("other")
    for query in ({}, {"state": "completed"}):
        page = await guest.sees("/jobs", **query, limit=2)
        assert [job["version"] for job in page["items"] if job["key"] == "again"] == [3]
        assert page["total"] == len(page["items"]), query
        assert page["next"] is None


async def test_the_line_is_paged_and_counted(guest: Guest) -> None:
    for number in range(5):
        await guest.submits(f"k{number}", f"user:{number}")
    page = await guest.sees("/line", limit=2)
    assert ([item["key"] for item in page["items"]], page["total"]) == (["k0", "k1"], 5)
    assert [item["key"] for item in await guest.sees_all("/line", limit=2)] == [f"k{n}" for n in range(5)]
    assert (await guest.sees("/line", limit=5))["next"] is None


async def test_a_queue_tells_settings_counts_and_whether_it_is_paused(guest: Guest) -> None:
    await busy(guest)
    queue = await guest.sees("")
    assert queue["counts"] == {"pending": 5, "processing": 2, "held": 0, "completed": 1, "failed": 1}
    assert (queue["waiting"], queue["running"], queue["slots"], queue["free"]) == (5, 2, 2, 0)
    assert (queue["settings"]["time_limit"], queue["settings"]["order"]) == (600.0, "newest-first")
    assert queue["classes"] == [{"name": "default", "cap": 600.0, "limit": 2, "running": 2, "used": 2}]
    assert (queue["paused"], queue["held"]) == (False, {"submitters": [], "profiles": []})
    paused = await guest.http.post(f"{guest.url}/pause", json={"reason": "lunch"})
    assert paused.json()["paused"] is True
    assert (paused.json()["pause"]["by"], paused.json()["pause"]["reason"]) == ("admin", "lunch")
    accepted = await guest.puts(body("late"))
    assert accepted.json()["waiting_for"] == {"code": "paused", "text": "the queue is paused by admin: lunch"}
    assert (await guest.http.post(f"{guest.url}/resume")).json()["paused"] is False


async def test_workers_tell_their_slots_and_what_they_serve(guest: Guest) -> None:
    await guest.store.join("w", 3, ["handler:grade", "command"])
    [worker] = (await guest.sees("/workers"))["items"]
    assert (worker["name"], worker["slots"], worker["busy"]) == ("w", 3, 0)
    assert sorted(worker["serves"]) == ["command", "handler:grade"]
    assert worker["last_seen"] == "1970-01-01T00:16:40.000000Z"
