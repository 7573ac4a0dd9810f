"""Duration classes over HTTP: asking for one, what is shown of them, and making a job shorter."""

from dataclasses import replace
from typing import Any

import pytest

from maitred.core.ids import job_id
from maitred.core.job import Band, Finish, Order, Submitter
from maitred.wire import JobBody, encode_body
from tests.conftest import Clock
from tests.http.floor import THREE
from tests.http.guest import Guest, body, is_problem

NEED = "handler:grade"


@pytest.fixture
async def floor(guest: Guest) -> Guest:
    """A guest of a queue with three classes, in which nobody works yet."""
    await guest.store.configure(THREE)
    return guest


async def shorten(guest: Guest, job: dict[str, Any], seconds: object) -> Any:
    return await guest.asks("POST", job["id"], "/duration", json={"seconds": seconds})


# ---------------------------------------------------------------- asking for a class


@pytest.mark.parametrize(
    ("asked", "name", "duration"),
    [
        ({"class": "fast"}, "fast", 3.0),
        ({"class": "medium"}, "medium", 10.0),
        ({"class": "slow"}, "slow", 30.0),
        ({"duration": 0.5}, "fast", 0.5),
        ({"duration": 3}, "fast", 3.0),
        ({"duration": 3.000001}, "medium", 3.000001),
        ({"duration": 5}, "medium", 5.0),
        ({"duration": 30}, "slow", 30.0),
        ({"duration": 1e-9}, "fast", 0.000001),
        ({}, None, 30.0),
        ({"class": None, "duration": None}, None, 30.0),
    ],
)
async def test_a_job_is_in_the_class_that_it_asks_for_or_that_holds_its_duration(
    floor: Guest, asked: dict[str, Any], name: str | None, duration: float
) -> None:
    job = await floor.submits(**asked)
    assert (job["class"], job["duration"]) == (name, duration)


async def test_a_queue_without_classes_has_one_with_its_time_limit(guest: Guest) -> None:
    assert (await guest.submits("a", duration=599.5))["class"] == "default"
    named = await guest.submits("b", **{"class": "default"})
    assert (named["class"], named["duration"]) == ("default", 600.0)
    elastic = await guest.submits("c")
    assert (elastic["class"], elastic["duration"]) == (None, 600.0)
    answer = await guest.puts({**body("d"), "class": "fast"})
    assert answer.json()["errors"] == [{"path": "class", "message": "must be one of default (600 s)"}]
    answer = await guest.puts({**body("d"), "duration": 601})
    says = "must be a number above 0 and at most 600 s (default 600 s)"
    assert answer.json()["errors"] == [{"path": "duration", "message": says}]


# ---------------------------------------------------------------- what is shown


async def test_a_queue_tells_its_classes_as_they_are_set(floor: Guest) -> None:
    settings = (await floor.sees(""))["settings"]
    assert settings["classes"] == [
        {"name": "fast", "cap": 3.0, "limit": None},
        {"name": "medium", "cap": 10.0, "limit": "50%"},
        {"name": "slow", "cap": 30.0, "limit": 1},
    ]
    assert settings["elastic"] == "borrow"
    assert settings["interactive"] == {"idle": 300.0, "cap": 3600.0, "per_submitter": 1}
    assert not [name for name in settings if name.startswith("interactive_")]


async def test_a_queue_tells_the_limit_of_each_class_and_how_much_of_it_is_used(floor: Guest) -> None:
    without = [(each["limit"], each["used"]) for each in (await floor.sees(""))["classes"]]
    assert without == [(0, 0), (0, 0), (0, 0)]
    await floor.store.join("w", 4, [NEED])
    await floor.submits("a", "user:1", duration=30)
    await floor.submits("b", "user:2", duration=10)
    await floor.submits("c", "user:3")
    assert (await floor.sees(""))["classes"] == [
        {"name": "fast", "cap": 3.0, "limit": 4, "running": 1, "used": 3},
        {"name": "medium", "cap": 10.0, "limit": 2, "running": 1, "used": 2},
        {"name": "slow", "cap": 30.0, "limit": 1, "running": 1, "used": 1},
    ]


async def test_f6_a_job_whose_level_is_full_says_so_and_a_shorter_one_starts(floor: Guest) -> None:
    await floor.store.join("w", 4, [NEED])
    running = await floor.submits("a", "user:1", **{"class": "slow"})
    waiting = await floor.submits("b", "user:2", **{"class": "slow"})
    shorter = await floor.submits("c", "user:3", **{"class": "fast"})
    assert (running["phase"], waiting["phase"], shorter["phase"]) == ("running", "waiting", "running")
    says = {"code": "class", "text": "slow limit reached: 1 of 1 running"}
    assert waiting["waiting_for"] == says
    [first] = (await floor.sees("/line"))["items"]
    assert (first["id"], first["waiting_for"]) == (waiting["id"], says)


@pytest.mark.parametrize(("policy", "holding"), [("borrow", "fast"), ("squeeze", "slow")])
async def test_f1_an_elastic_job_starts_at_once_and_is_granted_the_longest_cap(
    floor: Guest, policy: Any, holding: str
) -> None:
    await floor.store.configure(replace(THREE, elastic=policy))
    await floor.store.join("w", 4, [NEED])
    job = await floor.submits()
    assert (job["phase"], job["class"], job["duration"]) == ("running", None, 30.0)
    [running] = (await floor.sees("/running"))["items"]
    assert (running["class"], running["elastic"], running["duration"]) == (holding, True, 30.0)


async def test_running_jobs_tell_their_class_and_what_they_were_granted(floor: Guest, clock: Clock) -> None:
    await floor.store.join("w", 4, [NEED])
    await floor.submits("a", "user:1", duration=5)
    await floor.submits("b", "user:2", **{"class": "slow"})
    clock.at(2)
    first, second = (await floor.sees("/running"))["items"]
    shown = ("class", "elastic", "duration", "elapsed", "worker")
    assert [first[name] for name in shown] == ["medium", False, 5.0, 2.0, "w"]
    assert [second[name] for name in shown] == ["slow", False, 30.0, 2.0, "w"]


async def test_a_job_that_was_put_again_while_it_is_being_stopped_waits_for_that(floor: Guest) -> None:
    await floor.store.join("w", 4, [NEED])
    job = await floor.submits()
    assert job["phase"] == "running"
    await floor.asks("DELETE", job["id"])
    again = await floor.submits()
    assert (again["outcome"], again["phase"]) == ("created", "waiting")
    assert again["waiting_for"] == {"code": "stopping", "text": "its last run is being stopped"}


async def test_an_ended_job_tells_the_duration_that_it_had_if_it_asked_for_one(floor: Guest) -> None:
    shift = await floor.store.join("w", 4, [NEED])
    asked = await floor.submits("a", "user:1", duration=5)
    elastic = await floor.submits("b", "user:2")
    never = await floor.submits("c", "user:3", delay=60, duration=5)
    shift = await floor.store.take("w")
    await floor.store.renew("w", [start.lease for start in shift.starts])
    for job in (asked, elastic, never):
        await floor.asks("POST", job["id"], "/cancel")
    documents = [(await floor.asks("GET", job["id"])).json() for job in (asked, elastic, never)]
    assert [job["duration"] for job in documents] == [5.0, None, None]
    assert [job["class"] for job in documents] == ["medium", None, "medium"]


# ---------------------------------------------------------------- making a job shorter


async def test_f19_a_waiting_job_is_shortened_in_its_place_and_never_lengthened(floor: Guest) -> None:
    before = await floor.submits("a", "user:1", **{"class": "slow"})
    await floor.submits("b", "user:2")
    shorter = await shorten(floor, before, 3)
    assert shorter.status_code == 200
    job = shorter.json()
    assert (job["class"], job["duration"], job["position"]) == ("fast", 3.0, 1)
    assert [job[name] for name in ("release_at", "created_at")] == [
        before[name] for name in ("release_at", "created_at")
    ]
    assert is_problem(await shorten(floor, job, 3.5), 409, "longer-duration")
    assert (await floor.asks("GET", job["id"])).json()["duration"] == 3.0


async def test_an_elastic_job_that_is_shortened_stays_elastic(floor: Guest) -> None:
    job = await floor.submits()
    shorter = (await shorten(floor, job, 5)).json()
    assert (shorter["class"], shorter["duration"]) == (None, 5.0)


async def test_a_running_job_is_shortened_too(floor: Guest, clock: Clock) -> None:
    await floor.store.join("w", 4, [NEED])
    job = await floor.submits(**{"class": "slow"})
    clock.at(2)
    shorter = (await shorten(floor, job, 5)).json()
    assert (shorter["phase"], shorter["class"], shorter["duration"]) == ("running", "medium", 5.0)
    [running] = (await floor.sees("/running"))["items"]
    assert (running["class"], running["duration"]) == ("medium", 5.0)


async def test_an_ended_or_unknown_job_cannot_be_shortened(floor: Guest) -> None:
    job = await floor.submits(**{"class": "slow"})
    await floor.asks("POST", job["id"], "/cancel")
    assert is_problem(await shorten(floor, job, 3), 409, "ended")
    assert is_problem(await shorten(floor, {"id": "nobody"}, 3), 404, "unknown-job")


async def test_a_put_cannot_lengthen_a_job_either(floor: Guest) -> None:
    await floor.submits(duration=3)
    before = await floor.store.snapshot()
    assert is_problem(await floor.puts(body(duration=10)), 409, "longer-duration")
    assert await floor.store.snapshot() == before
    shorter = await floor.submits(duration=2)
    assert (shorter["outcome"], shorter["duration"]) == ("updated", 2.0)


async def test_a_longer_duration_in_a_list_is_refused_in_its_place(floor: Guest) -> None:
    await floor.submits("a", duration=3)
    sent = [body("a", duration=10), body("b", duration=10)]
    refused, taken = (await floor.http.post(f"{floor.url}/jobs/many", json=sent)).json()["items"]
    assert (refused["status"], refused["type"]) == (409, "urn:maitred:problem:longer-duration")
    assert taken["outcome"] == "created"


async def test_the_next_version_of_a_running_job_may_be_longer(floor: Guest) -> None:
    shift = await floor.store.join("w", 4, [NEED])
    await floor.submits(duration=3)
    longer = await floor.submits(duration=10)
    assert (longer["outcome"], longer["duration"]) == ("next-version", 10.0)
    shift = await floor.store.take("w")
    await floor.store.finish("w", [Finish(start.lease) for start in shift.starts])


async def test_an_interactive_job_is_neither_put_again_nor_made_shorter(floor: Guest) -> None:
    await floor.store.join("w", 4, [NEED])
    config = encode_body(JobBody.model_validate(body()), "local")
    order = Order(job_id("k"), Submitter("user", "1"), NEED, config, band=Band.INTERACTIVE, elastic=False)
    assert not (await floor.store.admit(order)).denied
    job = (await floor.asks("GET", order.id)).json()
    assert (job["band"], job["class"], job["duration"]) == ("interactive", None, 3600.0)
    assert is_problem(await floor.puts(body()), 409, "interactive")
    assert is_problem(await shorten(floor, job, 3), 409, "interactive")
