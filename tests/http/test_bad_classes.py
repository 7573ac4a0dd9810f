"""Wrong classes and durations: each fault names the classes of the queue, and nothing is changed."""

from typing import Any

import pytest

from maitred.core.settings import SECOND, Settings
from maitred.errors import Fault, InvalidJob
from maitred.service.desk import Desk
from maitred.store.port import Store, Stores
from maitred.wire import JobBody
from tests.http.floor import CAPS, CLASSES, THREE
from tests.http.guest import Guest, body, is_problem


@pytest.fixture(params=["memory"])
def kind(request: pytest.FixtureRequest) -> str:
    """Faults are found before any store is asked, so the reference is enough."""
    return str(request.param)


@pytest.fixture
async def floor(guest: Guest) -> Guest:
    """A guest of a queue with three classes, in which nobody works yet."""
    await guest.store.configure(THREE)
    return guest


async def shorten(guest: Guest, job: dict[str, Any], seconds: object) -> Any:
    return await guest.asks("POST", job["id"], "/duration", json={"seconds": seconds})


@pytest.mark.parametrize("value", ["Fast", "quick", "", 1, True, ["fast"], {"name": "fast"}])
async def test_a_wrong_class_is_a_fault_that_names_the_classes(floor: Guest, value: object) -> None:
    before = await floor.store.snapshot()
    answer = await floor.puts({**body(), "class": value})
    assert is_problem(answer, 422, "invalid")
    assert answer.json()["errors"] == [{"path": "class", "message": f"must be one of {CLASSES}"}]
    assert await floor.store.snapshot() == before


@pytest.mark.parametrize("value", [0, -1, 31, 30.000001, -0.0, 1e300, 10**400, "5", "5s", True, [5], {}])
async def test_f21_a_wrong_duration_is_a_fault_that_names_the_classes(floor: Guest, value: object) -> None:
    before = await floor.store.snapshot()
    answer = await floor.puts({**body(), "duration": value})
    assert is_problem(answer, 422, "invalid")
    says = f"must be a number above 0 and at most 30 s {CAPS}"
    assert answer.json()["errors"] == [{"path": "duration", "message": says}]
    assert await floor.store.snapshot() == before


async def test_a_class_and_a_duration_exclude_each_other(floor: Guest) -> None:
    answer = await floor.puts({**body(), "class": "fast", "duration": 2})
    assert is_problem(answer, 422, "invalid")
    says = f'cannot be sent together with "class"; the classes are {CLASSES}'
    assert answer.json()["errors"] == [{"path": "duration", "message": says}]


async def test_faults_of_the_class_are_told_with_all_others(floor: Guest) -> None:
    sent = {**body(""), "priority": "high", "class": "quick", "duration": 99, "delay": -1}
    answer = await floor.puts(sent)
    paths = [fault["path"] for fault in answer.json()["errors"]]
    assert paths == ["key", "delay", "priority", "class", "duration"]


async def test_of_many_jobs_each_has_its_class_or_its_fault(floor: Guest) -> None:
    sent = [body("a", duration=5), body("b", duration=31), {**body("c"), "class": "slow"}]
    answer = await floor.http.post(f"{floor.url}/jobs/many", json=sent)
    first, faulty, last = answer.json()["items"]
    assert (first["class"], faulty["status"], last["class"]) == ("medium", 422, "slow")


async def test_a_body_that_was_checked_elsewhere_is_checked_against_the_queues_classes(
    stores: Stores, store: Store
) -> None:
    await store.configure(THREE)
    quick = JobBody.model_validate({**body("a"), "class": "quick"})
    long = JobBody.model_validate(body("b", duration=31))
    answers = await Desk(stores).accept(store.queue, [quick, long])
    faults = [answer.faults for answer in answers if isinstance(answer, InvalidJob)]
    assert faults == [
        [Fault("class", f"must be one of {CLASSES}")],
        [Fault("duration", f"must be a number above 0 and at most 30 s {CAPS}")],
    ]


@pytest.mark.parametrize("seconds", [0, -1, 31, "5", None, True, [5]])
async def test_a_wrong_duration_is_a_fault_there_too(floor: Guest, seconds: object) -> None:
    job = await floor.submits(**{"class": "slow"})
    before = await floor.store.snapshot()
    answer = await shorten(floor, job, seconds)
    assert is_problem(answer, 422, "invalid")
    says = f"must be a number above 0 and at most 30 s {CAPS}"
    assert answer.json()["errors"] == [{"path": "seconds", "message": says}]
    assert await floor.store.snapshot() == before


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"", 400, "malformed"),
        (b'{"seconds": NaN}', 400, "malformed"),
        (b"{}", 422, "invalid"),
        (b"[]", 422, "invalid"),
        (b'{"seconds": 3, "reason": "x"}', 422, "invalid"),
    ],
)
async def test_a_body_that_says_no_duration_is_refused(
    floor: Guest, sent: bytes, status: int, code: str
) -> None:
    job = await floor.submits()
    answer = await floor.asks("POST", job["id"], "/duration", content=sent)
    assert is_problem(answer, status, code)


async def test_changed_caps_are_seen_in_what_is_allowed(guest: Guest) -> None:
    await guest.store.configure(Settings(time_limit=7 * SECOND))
    answer = await guest.puts(body(duration=8))
    [fault] = answer.json()["errors"]
    assert fault["message"] == "must be a number above 0 and at most 7 s (default 7 s)"
