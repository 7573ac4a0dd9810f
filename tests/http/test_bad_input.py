"""Bad input: a status from the contract, each fault with its path, and nothing changed in the store."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maitred.core.settings import Settings
from maitred.errors import Fault, InvalidJob
from maitred.service.desk import Desk
from maitred.service.intake import Accepted
from maitred.store.port import Store, Stores
from maitred.wire import JobBody
from tests.http.guest import Guest, body, is_problem

FAULTS: list[tuple[str, Any]] = [
    ("key", ""),
    ("key", "k" * 513),
    ("key", "é" * 257),
    ("key", 7),
    ("key", None),
    ("submitter", "user:7"),
    ("submitter.type", {"type": "robot", "id": "7"}),
    ("submitter.id", {"type": "user", "id": ""}),
    ("submitter.id", {"type": "user", "id": "x" * 257}),
    ("submitter.id", {"type": "user", "id": 7}),
    ("submitter.id", {"type": "user"}),
    ("submitter.name", {"type": "user", "id": "7", "name": "x"}),
    ("priority", -1),
    ("priority", 100),
    ("priority", 5.5),
    ("priority", "5"),
    ("priority", True),
    ("priority", 10**30),
    ("priority", None),
    ("delay", -1),
    ("delay", 2_592_001),
    ("delay", 1e300),
    ("delay", "60"),
    ("delay", True),
    ("immediate", "yes"),
    ("immediate", 1),
    ("bulk", 0),
    ("response_url", "ftp://example.org/"),
    ("response_url", "http://"),
    ("response_url", "http://[::1"),
    ("response_url", "http://a b/"),
    ("response_url", "http://x:99999/"),
    ("metadata", ["a"]),
    ("metadata.a", {"a": 1}),
    ("expires_at", 1_800_000_000),
    ("expires_at", "tomorrow"),
    ("expires_at", "2026-11-15T20:55:00"),
    ("expires_at", "9999-01-01T00:00:00Z"),
    ("class", "fast"),
    ("duration", 601),
    ("batch", ""),
    ("batch", "b" * 65),
    ("profile_name", ""),
    ("profile_name", "p" * 257),
    ("abandon_after", 0),
    ("abandon_after", 2_592_001),
    ("abandon_after", "60"),
    ("prioritty", 5),
    ("run", None),
    ("run", "ls"),
    ("run", {}),
    ("run", {"args": {}}),
    ("run.script", {"script": []}),
    ("run.script", {"script": "ls"}),
    ("run.script.0", {"script": ["ls"]}),
    ("run.script.0.cmd", {"script": [{"cmd": []}]}),
    ("run.script.0.on_fail", {"script": [{"cmd": "ls", "on_fail": "no such label"}]}),
    ("run.script.1", {"script": [{"cmd": "ls", "on_complete": "output"}, {"cmd": "never"}]}),
    ("run.script", {"script": [{"cmd": "ls"}], "command": ["ls"]}),
    ("run.files.kind=script", {"script": [{"cmd": "ls"}], "files": {"kind=script": 1}}),
    ("run.handler", {"handler": "9lives"}),
    ("run.handler", {"handler": "a" * 129}),
    ("run.handler", {"handler": "a b"}),
    ("run.handler", {"handler": "a\n"}),
    ("run.args", {"handler": "grade", "args": [1]}),
    ("run.command", {"handler": "grade", "command": ["ls"]}),
    ("run.command", {"command": []}),
    ("run.command", {"command": "ls"}),
    ("run.command.1", {"command": ["ls", 1]}),
    ("run.command.0", {"command": ["l\0s"]}),
    ("run.files.a", {"command": ["ls"], "files": {"a": "text"}}),
    ("run.files.a", {"command": ["ls"], "files": {"a": {"text": "x", "base64": "eA=="}}}),
    ("run.files.a", {"command": ["ls"], "files": {"a": {"base64": "not base64"}}}),
    ("run.files.a", {"command": ["ls"], "files": {"a": {"url": "http://x/", "sha256": "0"}}}),
    ("run.files.../a", {"command": ["ls"], "files": {"../a": {"text": "x"}}}),
    ("run.files./a", {"command": ["ls"], "files": {"/a": {"text": "x"}}}),
    ("run.files.a\0b", {"command": ["ls"], "files": {"a\0b": {"text": "x"}}}),
    ("run.files." + "ü" * 128, {"command": ["ls"], "files": {"ü" * 128: {"text": "x"}}}),
    ("run.artifacts.0", {"command": ["ls"], "artifacts": ["../x"]}),
    ("run.artifacts.0", {"command": ["ls"], "artifacts": ["a/" * 512 + "b"]}),
    ("run.artifacts", {"command": ["ls"], "artifacts": "out.txt"}),
    ("run.artifacts", {"command": ["ls"], "artifacts": ["x"] * 101}),
    ("run.files.a", {"command": ["ls"], "files": {"a": {"url": "http://x/"}}}),
    ("run.files.a", {"command": ["ls"], "files": {"a": {"url": "file:///etc/passwd", "sha256": "0" * 64}}}),
    ("run.files.a", {"command": ["ls"], "files": {"a": {"url": "http://x/", "sha256": "g" * 64}}}),
    ("run.files", {"command": ["ls"], "files": {"a": {"text": "x"}, "a/b/c": {"text": "x"}}}),
    ("run.files", {"command": ["ls"], "files": {str(n): {"text": ""} for n in range(1001)}}),
]


@pytest.mark.parametrize(("path", "value"), FAULTS)
async def test_one_fault_is_one_entry_with_its_path_and_changes_nothing(
    guest: Guest, path: str, value: object
) -> None:
    before = await guest.store.snapshot()
    answer = await guest.puts({**body(), path.partition(".")[0]: value})
    assert is_problem(answer, 422, "invalid"), answer.text
    [fault] = answer.json()["errors"]
    assert fault["path"] == path
    assert fault["message"]
    assert await guest.store.snapshot() == before


async def test_a_whole_number_may_be_written_with_a_point(guest: Guest) -> None:
    assert (await guest.submits(priority=7.0))["priority"] == 7


async def test_a_time_may_be_written_in_small_letters(guest: Guest) -> None:
    job = (await guest.puts(body(expires_at="2030-01-01t02:00:00.5z"))).json()
    assert job["expires_at"] == "2030-01-01T02:00:00.500000Z"


async def test_l21_a_body_with_three_faults_has_three_entries(guest: Guest) -> None:
    sent = {"key": "", "submitter": {"type": "user"}, "run": {"handler": "grade"}, "priority": "high"}
    answer = await guest.puts(sent)
    assert is_problem(answer, 422, "invalid")
    assert [fault["path"] for fault in answer.json()["errors"]] == ["key", "submitter.id", "priority"]


async def test_immediate_and_bulk_exclude_each_other_beside_other_faults(guest: Guest) -> None:
    answer = await guest.puts({**body(), "immediate": True, "bulk": True, "delay": -1})
    assert [fault["path"] for fault in answer.json()["errors"]] == ["delay", "bulk"]


@pytest.mark.parametrize("key", ["\0", "\x7f\x01", "a b\n", "🍽" * 128, "{}:*", "../..", "ключ", "'\"\\"])
async def test_any_text_is_a_key_and_a_submitter(guest: Guest, key: str) -> None:
    job = await guest.submits(key, f"team:{key[:64]}")
    assert (await guest.asks("GET", job["id"])).json()["key"] == key
    [listed] = (await guest.sees("/jobs", key=key))["items"]
    assert listed["submitter"] == {"type": "team", "id": key[:64]}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"nope",
        b'{"key": NaN}',
        b'{"delay": Infinity}',
        b'{"delay": 1e999}',
        b'{"key": "\\ud800"}',
        b'{"key": "\xff"}',
        b"[" * 100_000,
        b"\xef\xbb\xbf{}",
    ],
)
async def test_what_is_not_json_is_a_bad_request(guest: Guest, text: bytes) -> None:
    before = await guest.store.snapshot()
    answer = await guest.http.put(f"{guest.url}/jobs", content=text)
    assert is_problem(answer, 400, "malformed"), answer.text
    assert await guest.store.snapshot() == before


@pytest.mark.parametrize("value", [None, [], "text", 5, True])
async def test_json_that_is_no_object_is_one_fault(guest: Guest, value: object) -> None:
    answer = await guest.puts(value)
    assert is_problem(answer, 422, "invalid")
    assert len(answer.json()["errors"]) == 1


async def test_an_unknown_queue_is_not_found(guest: Guest) -> None:
    for verb, what in (("PUT", "/jobs"), ("GET", "/jobs"), ("GET", "/line"), ("POST", "/pause"), ("GET", "")):
        sent = body() if verb == "PUT" else None
        answer = await guest.http.request(verb, f"/api/v1/queues/nope{what}", json=sent)
        assert is_problem(answer, 404, "unknown-queue"), (verb, what)
    assert "nope" not in [queue["name"] for queue in (await guest.http.get("/api/v1/queues")).json()["items"]]


async def test_an_unknown_handler_is_a_fault_that_names_the_known_ones(guest: Guest) -> None:
    await guest.store.join("w", 1, ["handler:grade", "handler:regrade"])
    before = await guest.store.snapshot()
    answer = await guest.puts(body(run={"handler": "grad"}))
    [fault] = answer.json()["errors"]
    assert (answer.status_code, fault["path"]) == (422, "run.handler")
    assert "grade, regrade" in fault["message"]
    assert await guest.store.snapshot() == before


async def test_a_body_over_the_limit_is_too_large_also_without_a_length(guest: Guest) -> None:
    await guest.store.configure(Settings(max_body=1000))
    before = await guest.store.snapshot()
    large = json.dumps(body(metadata={"x": "x" * 1000})).encode()

    async def chunks() -> Any:
        for start in range(0, len(large), 100):
            yield large[start : start + 100]

    for content in (large, chunks()):
        answer = await guest.http.put(f"{guest.url}/jobs", content=content)
        assert is_problem(answer, 413, "too-large")
        assert answer.json()["limit"] == 1000
    assert await guest.store.snapshot() == before


async def test_a_delay_beyond_the_queues_own_bound_is_a_fault(guest: Guest) -> None:
    await guest.store.configure(Settings(max_delay=60_000_000))
    assert (await guest.submits(delay=60))["delay"] == 60.0
    answer = await guest.puts(body("", delay=60.5))
    assert [fault["path"] for fault in answer.json()["errors"]] == ["key", "delay"]
    assert answer.json()["errors"][1]["message"] == "must be at most 60 seconds, the queue's max_delay"


async def test_an_immediate_jobs_delay_is_ignored_however_long(guest: Guest) -> None:
    await guest.store.configure(Settings(max_delay=60_000_000))
    assert (await guest.submits(delay=61, immediate=True))["band"] == "immediate"


async def test_a_body_that_was_checked_elsewhere_is_checked_against_the_queue(
    stores: Stores, store: Store
) -> None:
    await store.configure(Settings(max_delay=60_000_000))
    late, now = (JobBody.model_validate(body(delay=61, immediate=now)) for now in (False, True))
    refused, taken = await Desk(stores).accept(store.queue, [late, now])
    assert isinstance(refused, InvalidJob)
    assert refused.faults == [Fault("delay", "must be at most 60 seconds, the queue's max_delay")]
    assert isinstance(taken, Accepted)


@pytest.mark.parametrize(
    ("limits", "which"), [({"max_total": 1}, "total"), ({"max_per_submitter": 1}, "per_submitter")]
)
async def test_a_full_queue_refuses_and_tells_the_limit(
    guest: Guest, limits: dict[str, int], which: str
) -> None:
    await guest.store.configure(Settings(**limits))  # type: ignore[arg-type]
    await guest.submits("a")
    before = await guest.store.snapshot()
    answer = await guest.puts(body("b"))
    assert is_problem(answer, 429, "full")
    assert (answer.json()["limit"], answer.json()["which"]) == (1, which)
    assert int(answer.headers["retry-after"]) > 0
    assert await guest.store.snapshot() == before


async def test_another_submitters_key_is_a_conflict(guest: Guest) -> None:
    await guest.submits("a", "user:7")
    before = await guest.store.snapshot()
    assert is_problem(await guest.puts(body("a", "team:7")), 409, "other-submitter")
    assert await guest.store.snapshot() == before


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 501}, "limit"),
        ({"limit": "many"}, "limit"),
        ({"cursor": "nonsense"}, "cursor"),
        ({"cursor": "ünï"}, "cursor"),
        ({"state": "asleep"}, "state"),
        ({"submitter": "7"}, "submitter"),
        ({"colour": "blue"}, "colour"),
    ],
)
async def test_a_wrong_query_is_a_fault(guest: Guest, query: dict[str, Any], path: str) -> None:
    answer = await guest.http.get(f"{guest.url}/jobs", params=query)
    assert is_problem(answer, 422, "invalid")
    assert [fault["path"] for fault in answer.json()["errors"]] == [path]


async def test_wrong_small_bodies_are_faults(guest: Guest) -> None:
    job = await guest.submits()
    for what, sent in (
        ("/release", {"nonce": "1"}),
        ("/release", {"nonce": -1}),
        ("/delay", {"nonse": 1}),
        ("/delay", []),
        ("/cancel", {"reason": 5}),
        ("/cancel", {"reason": "x" * 1001}),
    ):
        assert is_problem(await guest.asks("POST", job["id"], what, json=sent), 422, "invalid"), (what, sent)
    assert is_problem(await guest.asks("POST", job["id"], "/release", content=b"{"), 400, "malformed")
    assert (await guest.asks("POST", job["id"], "/release", json={"nonce": None})).status_code == 200


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from([*body(), *(path.partition(".")[0] for path, _ in FAULTS)])


@pytest.fixture(params=["memory"])
def kind(request: pytest.FixtureRequest) -> str:
    """Faults are found before any store is asked, so the reference is enough for the many cases here."""
    return str(request.param)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sent=JSON | st.dictionaries(FIELDS, JSON, max_size=6), good=st.booleans())
async def test_random_json_never_breaks_the_server(guest: Guest, sent: Any, good: bool) -> None:
    mixed = {**body(), **sent} if good and isinstance(sent, dict) else sent
    answer = await guest.puts(mixed)
    assert answer.status_code in (200, 201, 400, 409, 422, 429), answer.text
