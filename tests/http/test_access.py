"""Who may call: every route with every role, and what a submitter's key may touch and see."""

import json
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute, APIWebSocketRoute

from maitred.core.settings import Settings
from maitred.errors import TooOften, Unauthorized
from maitred.http import create_app
from maitred.http.access import RULES, WEBSOCKET
from maitred.service.clerk import Clerk
from maitred.service.desk import Desk
from maitred.service.door import Door
from maitred.service.keyring import Keys, Role
from maitred.service.meter import Meter
from maitred.store.memory import MemoryStores
from maitred.store.memory_keyring import MemoryKeyring
from maitred.wire import KeyBody
from tests.http.guest import HOST, body, is_problem
from tests.http.house import House, events
from tests.service.post import postman

ROLES: tuple[Role, ...] = ("submitter", "viewer", "operator", "admin")
QUEUE = "/api/v1/queues/q"
# What each role may do, as the contract has it, said here once more and by other means than the table.
READS_OF_ADMINS = ("/api/v1/keys", "/api/v1/audit")
NO_READS_OF_SUBMITTERS = (*READS_OF_ADMINS, "/workers", "/metrics")
WRITES_OF_SUBMITTERS = {
    ("PUT", "/jobs"),
    ("POST", "/jobs/many"),
    ("DELETE", "/jobs/{id}"),
    ("POST", "/jobs/{id}/cancel"),
    ("POST", "/jobs/{id}/duration"),
    ("POST", "/batches"),
    ("POST", "/batches/{bid}/jobs"),
    ("POST", "/batches/{bid}/seal"),
    ("DELETE", "/batches/{bid}"),
    (WEBSOCKET, "/interactive"),
}


APP = create_app(Desk(MemoryStores()), hosts=[HOST])


def routes_of(found: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Give each method and path, also of routers that were included."""
    for route in found:
        if isinstance(route, APIRoute):
            yield from ((method, route.path) for method in sorted(route.methods or ()))
        elif isinstance(route, APIWebSocketRoute):
            yield WEBSOCKET, route.path
        elif hasattr(route, "original_router"):
            yield from routes_of(route.original_router.routes)


ROUTES = list(routes_of(APP.routes))
# Pages for everybody, which hold nothing but what is public.
OPEN = {"/docs", "/openapi.json"}


def may(role: str, method: str, path: str) -> bool:
    """Tell what the contract says."""
    below = path.removeprefix("/api/v1/queues/{queue}")
    if role == "admin":
        return True
    if path.startswith(READS_OF_ADMINS):
        return False
    if role == "submitter":
        reads = method == "GET" and not below.endswith(NO_READS_OF_SUBMITTERS)
        return reads or (method, below) in WRITES_OF_SUBMITTERS
    return method == "GET" or role == "operator"


class Place:
    """A server with a key of each role, on a queue with a job and a batch of user:1."""

    def __init__(self, http: httpx.AsyncClient, desk: Desk) -> None:
        self.http, self.desk = http, desk
        self.keys: dict[str, str] = {}

    async def makes(self, role: Role, *submitters: str, **more: Any) -> str:
        """Make a key."""
        made = await self.desk.key_desk.create(KeyBody(role=role, submitters=list(submitters), **more))
        self.keys[role] = made["key"]
        return str(made["key"])

    async def asks(self, key: str, method: str, path: str, sent: object = None) -> httpx.Response:
        """Call with a key."""
        content = None if sent is None else json.dumps(sent)
        headers = {"Authorization": f"Bearer {key}"}
        return await self.http.request(method, path, content=content, headers=headers)


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    stores = MemoryStores()
    await stores.queue("q").configure(Settings())
    desk = Desk(stores)
    app = create_app(desk, hosts=[HOST])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=f"http://{HOST}") as http:
        yield Place(http, desk)


@pytest.fixture
async def guarded(place: Place) -> Place:
    for role in ROLES:
        await place.makes(role, *(["user:1"] if role == "submitter" else []), name=f"the {role}")
    return place


def test_every_route_stands_in_the_table_or_is_open() -> None:
    described = APP.openapi()["paths"]
    assert {(verb.upper(), path) for path, verbs in described.items() for verb in verbs} <= set(ROUTES)
    assert any(method == WEBSOCKET for method, _ in ROUTES)
    assert {f"{method} {path}" for method, path in ROUTES} <= set(RULES)
    others = [route for route in APP.routes if not list(routes_of([route]))]
    assert {getattr(route, "path", None) for route in others} == OPEN


async def dialled(place: Place, path: str, **headers: str) -> tuple[int, dict[str, Any]]:
    """Ask for a WebSocket; give 101, or the status of the refusal and its problem."""
    told: list[Any] = []
    comes = iter([{"type": "websocket.connect"}, {"type": "websocket.disconnect", "code": 1000}])
    sent = {"host": HOST, **headers}

    async def receive() -> Any:
        return next(comes)

    async def send(message: Any) -> None:
        told.append(message)

    scope = {
        "type": "websocket",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
        "client": ("127.0.0.1", 1),
        "subprotocols": [],
        "extensions": {"websocket.http.response": {}},
    }
    await place.http._transport.app(scope, receive, send)  # type: ignore[attr-defined]
    if told[0]["type"] == "websocket.accept":
        return 101, {}
    return told[0]["status"], json.loads(told[1]["body"])


@pytest.mark.parametrize("path", [path for method, path in ROUTES if method == WEBSOCKET])
async def test_each_role_may_dial_what_the_contract_says(guarded: Place, path: str) -> None:
    asked = path.format(queue="q")
    for role in ROLES:
        status, _ = await dialled(guarded, asked, authorization=f"Bearer {guarded.keys[role]}")
        assert status == (101 if may(role, WEBSOCKET, path) else 403), role
    assert (await dialled(guarded, asked, authorization="Bearer mk_x_y"))[0] == 401


async def test_a_websocket_that_is_not_there_is_a_problem(guarded: Place) -> None:
    for path in ("/nope", "/healthz", f"{QUEUE}/jobs"):
        status, problem = await dialled(guarded, path)
        assert (status, problem["type"]) == (404, "urn:maitred:problem:no-such-route")
        assert "nothing at this path" in problem["detail"]


@pytest.mark.parametrize(("method", "path"), [route for route in ROUTES if route[0] != WEBSOCKET])
async def test_each_role_may_call_what_the_contract_says(guarded: Place, method: str, path: str) -> None:
    asked = path.format(queue="q", id="nobody", bid="nobody", name="n", type="user")
    asked = asked.replace("/submitters/user/nobody", "/submitters/user/1")
    public = path in ("/healthz", "/readyz")
    for headers in ({}, {"Authorization": "Bearer mk_x_y"}, {"Authorization": "Basic eDp5"}):
        answer = await guarded.http.request(method, asked, headers=headers)
        assert (answer.status_code == 401) != public
        assert public or is_problem(answer, 401, "unauthorized")
        assert public or answer.headers["www-authenticate"] == "Bearer"
    # Last the admin, whose call may change the keys.
    for role in ROLES:
        answer = await guarded.asks(guarded.keys[role], method, asked)
        allowed = public or may(role, method, path)
        assert (answer.status_code != 403) == allowed, (role, answer.text)
        assert answer.status_code != 500
        assert allowed or is_problem(answer, 403, "forbidden")


async def test_while_there_are_no_keys_only_loopback_is_let_in(place: Place) -> None:
    assert (await place.http.get("/api/v1/keys")).status_code == 200
    far = httpx.ASGITransport(app=place.http._transport.app, client=("192.0.2.1", 1))  # type: ignore[attr-defined]
    async with httpx.AsyncClient(transport=far, base_url=f"http://{HOST}") as http:
        assert is_problem(await http.get("/api/v1/queues"), 401, "unauthorized")
        assert (await http.get("/healthz")).status_code == 200


async def test_a_host_that_is_not_its_own_is_refused_until_there_are_keys(place: Place) -> None:
    other = {"Host": "elsewhere.example"}
    assert is_problem(await place.http.get("/api/v1/queues", headers=other), 403, "not-own-host")
    key = await place.makes("viewer")
    assert is_problem(await place.http.get("/api/v1/queues", headers=other), 401, "unauthorized")
    answer = await place.http.get("/api/v1/queues", headers={**other, "Authorization": f"bearer {key}"})
    assert answer.status_code == 200


async def test_the_first_key_is_made_over_http_and_ends_the_open_house(place: Place) -> None:
    made = await place.http.post("/api/v1/keys", json={"role": "admin", "name": "root"})
    assert made.status_code == 201
    key, id = made.json()["key"], made.json()["id"]
    assert key.startswith(f"mk_{id}_")
    assert is_problem(await place.http.get("/api/v1/keys"), 401, "unauthorized")
    listed = await place.asks(key, "GET", "/api/v1/keys")
    assert key not in listed.text
    assert {each["name"] for each in listed.json()["items"]} >= {"root"}
    assert all(each.get("key") is None for each in listed.json()["items"])
    # Without any good key left the door stays shut.
    assert (await place.asks(key, "DELETE", f"/api/v1/keys/{id}")).status_code == 204
    assert is_problem(await place.asks(key, "GET", "/api/v1/keys"), 401, "unauthorized")
    assert is_problem(await place.http.get("/api/v1/keys"), 401, "unauthorized")


async def test_a_key_that_is_revoked_or_replaced_is_good_no_longer(guarded: Place) -> None:
    admin, viewer = guarded.keys["admin"], guarded.keys["viewer"]
    id = viewer.split("_")[1]
    renewed = await guarded.asks(admin, "POST", f"/api/v1/keys/{id}/rotate")
    new = renewed.json()["key"]
    assert is_problem(await guarded.asks(viewer, "GET", QUEUE), 401, "unauthorized")
    assert (await guarded.asks(new, "GET", QUEUE)).status_code == 200
    sent = {"new_key": False}
    only_secret = await guarded.asks(admin, "POST", f"/api/v1/keys/{id}/rotate", sent)
    assert only_secret.json().get("key") is None
    assert only_secret.json()["secrets"][1]["secret"] == renewed.json()["secrets"][0]["secret"]
    local = await guarded.asks(admin, "POST", "/api/v1/keys/local/rotate")
    assert (local.status_code, local.json().get("key")) == (200, None)
    assert (await guarded.asks(new, "GET", QUEUE)).status_code == 200
    assert (await guarded.asks(admin, "DELETE", f"/api/v1/keys/{id}")).status_code == 204
    assert is_problem(await guarded.asks(new, "GET", QUEUE), 401, "unauthorized")
    again = await guarded.asks(admin, "DELETE", f"/api/v1/keys/{id}")
    assert is_problem(again, 409, "conflict")
    assert is_problem(await guarded.asks(admin, "DELETE", "/api/v1/keys/local"), 409, "conflict")
    assert is_problem(await guarded.asks(admin, "DELETE", "/api/v1/keys/nobody"), 404, "unknown-key")


@pytest.mark.parametrize(
    ("asked", "faults"),
    [
        ({}, {"role": "is required"}),
        ({"role": "king"}, {"role": "viewer, submitter, operator or admin"}),
        ({"role": "submitter", "expires_in": 0}, {"submitters": "user:ID", "expires_in": "above 0"}),
        ({"role": "submitter", "submitters": ["ada"]}, {"submitters.0": "user:ID"}),
        ({"role": "submitter", "submitters": ["user:"]}, {"submitters.0": "user:ID"}),
        ({"role": "viewer", "submitters": ["user:1"]}, {"submitters": "submitter only"}),
        ({"role": "admin", "queues": ["q"], "name": 7}, {"queues": "role admin", "name": "printable text"}),
        ({"role": "viewer", "queues": [""]}, {"queues.0": "name of a queue"}),
        ({"role": "viewer", "queues": "q"}, {"queues": "a list"}),
        ({"role": "viewer", "name": "a\nb"}, {"name": "printable text"}),
        ({"role": "viewer", "more": 1}, {"more": "not a field"}),
    ],
)
async def test_a_key_that_makes_no_sense_has_an_entry_for_each_fault(
    place: Place, asked: dict[str, Any], faults: dict[str, str]
) -> None:
    answer = await place.http.post("/api/v1/keys", json=asked)
    assert is_problem(answer, 422, "invalid"), asked
    told = {fault["path"]: fault["message"] for fault in answer.json()["errors"]}
    assert told.keys() == faults.keys(), told
    assert all(words in told[path] for path, words in faults.items()), told
    assert not await place.desk.keys.any_made()


async def test_a_key_for_some_queues_is_good_for_no_other(guarded: Place) -> None:
    await guarded.desk.store("other").configure(Settings())
    roles: tuple[Role, ...] = ("viewer", "operator")
    for role in roles:
        key = await guarded.makes(role, queues=["q"])
        listed = (await guarded.asks(key, "GET", "/api/v1/queues")).json()
        assert ([each["name"] for each in listed["items"]], listed["total"]) == (["q"], 1)
        assert (await guarded.asks(key, "GET", QUEUE)).status_code == 200
        for what in ("", "/line", "/jobs", "/jobs/x"):
            refused = await guarded.asks(key, "GET", f"/api/v1/queues/other{what}")
            assert is_problem(refused, 403, "forbidden")
        assert is_problem(await guarded.asks(key, "GET", "/api/v1/queues/%6Fther"), 403, "forbidden")


async def test_a_submitters_key_asks_for_nothing_that_is_for_operators(guarded: Place) -> None:
    key = guarded.keys["submitter"]
    for sent in (
        body("a", "user:2"),
        body("a", "team:1"),
        body("a", immediate=True),
        body("a", bulk=True),
        body("a", priority=4),
    ):
        assert is_problem(await guarded.asks(key, "PUT", f"{QUEUE}/jobs", sent), 403, "forbidden"), sent
        many = (await guarded.asks(key, "POST", f"{QUEUE}/jobs/many", [sent, body("fine")])).json()["items"]
        assert (many[0]["status"], many[1]["key"]) == (403, "fine")
    assert (await guarded.asks(key, "PUT", f"{QUEUE}/jobs", body("a", priority=5))).status_code == 201
    assert (await guarded.desk.store("q").snapshot()).jobs.keys()


async def test_a_gateways_key_submits_for_all(guarded: Place) -> None:
    key = await guarded.makes("submitter", "*")
    made = await guarded.asks(key, "PUT", f"{QUEUE}/jobs", body("a", "team:7"))
    assert made.status_code == 201
    assert (await guarded.asks(key, "GET", f"{QUEUE}/jobs/{made.json()['id']}")).json()["key"] == "a"


async def test_of_others_jobs_a_submitter_sees_where_they_are_and_nothing_else(guarded: Place) -> None:
    key, operator = guarded.keys["submitter"], guarded.keys["operator"]
    secret = body("secret-key", "user:2", metadata={"course": "secret"})
    other = (await guarded.asks(operator, "PUT", f"{QUEUE}/jobs", secret)).json()["id"]
    mine = (await guarded.asks(key, "PUT", f"{QUEUE}/jobs", body("mine"))).json()["id"]
    seen = {"id": other, "band": "scheduled", "class": None, "state": "pending", "position": 1}
    assert (await guarded.asks(key, "GET", f"{QUEUE}/jobs/{other}")).json() == seen
    for what in ("/line", "/jobs"):
        first, second = (await guarded.asks(key, "GET", f"{QUEUE}{what}")).json()["items"]
        assert (first, second["key"]) == (seen, "mine")
    for asked in ("key=secret-key", "metadata.course=secret"):
        assert (await guarded.asks(key, "GET", f"{QUEUE}/jobs?{asked}")).json()["items"] == []
    for what in ("/jobs?submitter=user:2", "/submitters/user/2"):
        assert is_problem(await guarded.asks(key, "GET", f"{QUEUE}{what}"), 403, "forbidden")
    for what in ("events", "output", "deliveries", "artifacts/a", "output?version=1"):
        refused = await guarded.asks(key, "GET", f"{QUEUE}/jobs/{other}/{what}")
        assert is_problem(refused, 403, "forbidden"), what
    await guarded.desk.store("q").join("w", 2, ["handler:grade"])
    first, second = (await guarded.asks(key, "GET", f"{QUEUE}/running")).json()["items"]
    assert first == {**seen, "class": first["class"], "state": "processing", "position": None}
    assert (second["id"], second["key"]) == (mine, "mine")
    assert (await guarded.asks(key, "GET", f"{QUEUE}/submitters/user/1")).status_code == 200


async def test_a_submitter_touches_only_its_own_jobs(guarded: Place) -> None:
    key, operator = guarded.keys["submitter"], guarded.keys["operator"]
    other = (await guarded.asks(operator, "PUT", f"{QUEUE}/jobs", body("k", "user:2"))).json()["id"]
    for method, what, sent in (
        ("DELETE", "", None),
        ("POST", "/cancel", {}),
        ("POST", "/duration", {"seconds": 1}),
    ):
        refused = await guarded.asks(key, method, f"{QUEUE}/jobs/{other}{what}", sent)
        assert is_problem(refused, 403, "forbidden")
    await guarded.asks(operator, "POST", f"{QUEUE}/jobs/{other}/cancel")
    # An ended key could be submitted afresh by anybody; a submitter's key does not take it from its owner.
    taken = await guarded.asks(key, "PUT", f"{QUEUE}/jobs", body("k"))
    assert is_problem(taken, 409, "other-submitter")
    many = (await guarded.asks(key, "POST", f"{QUEUE}/jobs/many", [body("k")])).json()["items"]
    assert many[0]["status"] == 409
    mine = (await guarded.asks(key, "PUT", f"{QUEUE}/jobs", body("mine"))).json()["id"]
    cancelled = (await guarded.asks(key, "POST", f"{QUEUE}/jobs/{mine}/cancel", {"reason": "enough"})).json()
    assert cancelled["message"] == "cancelled by the submitter: enough"
    assert (await guarded.asks(key, "DELETE", f"{QUEUE}/jobs/{mine}")).status_code == 204


async def test_no_other_way_of_writing_an_id_reaches_anothers_job(guarded: Place) -> None:
    key, operator = guarded.keys["submitter"], guarded.keys["operator"]
    sent = [body("k", "user:2"), body("k", "user:2", response_url="http://example.org/")]
    ids = [(await guarded.asks(operator, "PUT", f"{QUEUE}/jobs", each)).json()["id"] for each in sent]
    before = (await guarded.desk.store("q").snapshot()).jobs
    for id in ids:
        encoded = "".join(f"%{byte:02X}" for byte in id.encode())
        twice = encoded.replace("%", "%25")
        for written in (encoded, twice, f"{id}%2F..%2F{id}", f"./{id}", f"x/../{id}", f"{id}%00", f"{id}/"):
            for method, what in (
                ("DELETE", ""),
                ("POST", "/cancel"),
                ("GET", "/output"),
                ("GET", "/artifacts/a"),
            ):
                answer = await guarded.asks(key, method, f"{QUEUE}/jobs/{written}{what}")
                assert answer.status_code in (403, 404, 405), (method, written, answer.text)
        for version in ("1&version=2", "2&version=1", "+1", "%31", "01", "0" * 16 + "1", "9" * 5_000):
            answer = await guarded.asks(key, "GET", f"{QUEUE}/jobs/{id}/output?version={version}")
            assert answer.status_code in (403, 422), version
    assert (await guarded.desk.store("q").snapshot()).jobs == before


async def test_a_submitter_cannot_say_who_it_is(guarded: Place) -> None:
    key, admin = guarded.keys["submitter"], guarded.keys["admin"].split("_")[1]
    for forged in ({"submitted_by": admin}, {"limited": False}, {"session": "x"}, {"policy_floor": False}):
        refused = await guarded.asks(key, "PUT", f"{QUEUE}/jobs", {**body("a"), **forged})
        assert is_problem(refused, 422, "invalid"), forged
        batch = {"submitter": {"type": "user", "id": "1"}, "seal": False, **forged}
        assert is_problem(await guarded.asks(key, "POST", f"{QUEUE}/batches", batch), 422, "invalid"), forged


async def test_a_batch_that_holds_others_jobs_is_not_deleted_by_a_submitter(guarded: Place) -> None:
    key, operator = guarded.keys["submitter"], guarded.keys["operator"]
    me = {"type": "user", "id": "1"}
    batch = (
        await guarded.asks(operator, "POST", f"{QUEUE}/batches", {"submitter": me, "seal": False})
    ).json()
    url = f"{QUEUE}/batches/{batch['id']}"
    await guarded.asks(operator, "POST", f"{url}/jobs", [body("mine"), body("theirs", "user:2")])
    added = (await guarded.asks(key, "POST", f"{url}/jobs", [body("theirs"), body("x", "user:2")])).json()[
        "items"
    ]
    assert [each["status"] for each in added] == [409, 403]
    seen = (await guarded.asks(key, "GET", f"{QUEUE}/jobs?batch={batch['id']}")).json()["items"]
    assert [each["key"] for each in seen] == ["mine"]
    assert is_problem(await guarded.asks(key, "DELETE", url), 403, "forbidden")
    # To an operator it is only not finished.
    assert is_problem(await guarded.asks(operator, "DELETE", url), 409, "unfinished")


async def test_a_submitters_delay_is_never_shorter_than_the_policys(guarded: Place) -> None:
    await guarded.desk.store("q").configure(Settings(per_recent=60_000_000))
    key, operator = guarded.keys["submitter"], guarded.keys["operator"]
    await guarded.asks(key, "PUT", f"{QUEUE}/jobs", body("a"))
    for asker, delay in ((key, 60.0), (operator, 0.0)):
        sent = body(f"by {asker}", delay=0)
        assert (await guarded.asks(asker, "PUT", f"{QUEUE}/jobs", sent)).json()["delay"] == delay


async def test_a_submitter_has_batches_of_its_own_only(guarded: Place) -> None:
    key, operator = guarded.keys["submitter"], guarded.keys["operator"]
    me, another = {"type": "user", "id": "1"}, {"type": "user", "id": "2"}
    run = {"handler": "grade"}
    for sent in (
        {"submitter": another, "seal": False},
        {"submitter": me, "bulk": True},
        {"submitter": me, "priority": 1},
        {"submitter": me, "jobs": [{"key": "x", "submitter": another, "run": run}]},
        {"submitter": me, "jobs": [{"key": "x", "priority": 0, "run": run}]},
        {"submitter": me, "jobs": [{"key": "x", "immediate": True, "run": run}]},
    ):
        assert is_problem(await guarded.asks(key, "POST", f"{QUEUE}/batches", sent), 403, "forbidden"), sent
    others = (
        await guarded.asks(operator, "POST", f"{QUEUE}/batches", {"submitter": another, "seal": False})
    ).json()
    mine = (await guarded.asks(key, "POST", f"{QUEUE}/batches", {"submitter": me, "seal": False})).json()
    for method, what in (
        ("GET", ""),
        ("GET", "/report"),
        ("GET", "/events"),
        ("POST", "/seal"),
        ("DELETE", ""),
    ):
        refused = await guarded.asks(key, method, f"{QUEUE}/batches/{others['id']}{what}")
        assert is_problem(refused, 403, "forbidden")
    added = await guarded.asks(key, "PUT", f"{QUEUE}/jobs", body("k", batch=others["id"]))
    assert is_problem(added, 403, "forbidden")
    listed = (await guarded.asks(key, "GET", f"{QUEUE}/batches")).json()
    assert ([each["id"] for each in listed["items"]], listed["total"]) == ([mine["id"]], 1)
    added = await guarded.asks(key, "POST", f"{QUEUE}/batches/{mine['id']}/jobs", [{"key": "k", "run": run}])
    assert added.json()["items"][0]["band"] == "scheduled"


async def test_where_there_is_a_delay_policy_a_submitters_batch_is_bulk(guarded: Place) -> None:
    await guarded.desk.store("q").configure(Settings(per_recent=60_000_000))
    sent = {"submitter": {"type": "user", "id": "1"}, "seal": False}
    for role, band in (("submitter", "bulk"), ("operator", "scheduled")):
        batch = (await guarded.asks(guarded.keys[role], "POST", f"{QUEUE}/batches", sent)).json()["id"]
        jobs = [{"key": f"by {role}", "run": {"handler": "grade"}}]
        added = await guarded.asks(guarded.keys[role], "POST", f"{QUEUE}/batches/{batch}/jobs", jobs)
        assert (added.json()["items"][0]["band"], added.json()["items"][0]["delay"]) == (band, 0.0)


async def test_a_queue_does_not_name_other_held_submitters(guarded: Place) -> None:
    for who in ("1", "2"):
        await guarded.asks(guarded.keys["operator"], "POST", f"{QUEUE}/submitters/user/{who}/hold")
    for role, names in (("submitter", ["user:1"]), ("viewer", ["user:1", "user:2"])):
        held = (await guarded.asks(guarded.keys[role], "GET", QUEUE)).json()["held"]["submitters"]
        assert sorted(each["name"] for each in held) == names
        assert {each["by"] for each in held} == {"the operator"}


async def test_a_submitters_callbacks_are_signed_with_its_own_secret(guarded: Place) -> None:
    key = guarded.keys["submitter"]
    sent = body("a", response_url="http://example.org/")
    id = (await guarded.asks(key, "PUT", f"{QUEUE}/jobs", sent)).json()["id"]
    [view] = await guarded.desk.store("q").read([id])
    assert view is not None
    assert json.loads(view.job.body)["submitted_by"] == key.split("_")[1]


async def test_every_change_is_in_the_audit_log(guarded: Place) -> None:
    submitter, admin = guarded.keys["submitter"], guarded.keys["admin"]
    id = (await guarded.asks(submitter, "PUT", f"{QUEUE}/jobs", body("a"))).json()["id"]
    await guarded.asks(submitter, "POST", f"{QUEUE}/pause")
    await guarded.asks(submitter, "POST", f"{QUEUE}/jobs/{id}/cancel")
    await guarded.asks(submitter, "GET", f"{QUEUE}/line")
    await guarded.asks(submitter, "DELETE", f"{QUEUE}/jobs/nobody")
    await guarded.http.put(f"{QUEUE}/jobs")
    log = (await guarded.asks(admin, "GET", "/api/v1/audit")).json()
    told = [(each["action"].split("/")[-1], each["subject"], each["status"]) for each in log["items"]]
    assert told == [("cancel", id, 200), ("pause", None, 403), ("jobs", id, 201)]
    last = log["items"][0]
    assert (last["by"], last["name"], last["queue"]) == (submitter.split("_")[1], "the submitter", "q")
    assert (last["address"], log["total"]) == ("127.0.0.1", 3)
    whole = (await guarded.asks(admin, "GET", "/api/v1/audit?limit=3")).json()
    assert whole == log, "a page that is just full is the last one"
    page = (await guarded.asks(admin, "GET", "/api/v1/audit?limit=2")).json()
    rest = (await guarded.asks(admin, "GET", f"/api/v1/audit?limit=2&cursor={page['next']}")).json()
    assert page["items"] + rest["items"] == log["items"]
    assert rest["next"] is None
    assert is_problem(await guarded.asks(admin, "GET", "/api/v1/audit?cursor=x"), 422, "invalid")


async def test_the_audit_log_names_the_jobs_of_a_list(guarded: Place) -> None:
    operator = guarded.keys["operator"]
    sent = [body("a"), body("b"), {}]
    taken = (await guarded.asks(operator, "POST", f"{QUEUE}/jobs/many", sent)).json()["items"]
    sent = [body(f"many {number}") for number in range(22)]
    await guarded.asks(operator, "POST", f"{QUEUE}/jobs/many", sent)
    log = (await guarded.asks(guarded.keys["admin"], "GET", "/api/v1/audit")).json()["items"]
    assert log[1]["subject"] == f"{taken[0]['id']}, {taken[1]['id']}"
    assert log[0]["subject"].endswith(", and 2 more")


async def test_the_jobs_of_a_submitters_batch_are_as_its_key_may_have_them(guarded: Place) -> None:
    store = guarded.desk.store("q")
    await store.configure(Settings(per_recent=60_000_000, max_per_submitter=2))
    operator = guarded.keys["operator"]
    taken = (await guarded.asks(operator, "PUT", f"{QUEUE}/jobs", body("theirs", "user:2"))).json()["id"]
    await guarded.asks(operator, "POST", f"{QUEUE}/jobs/{taken}/cancel")
    jobs = [{"key": key, "run": {"handler": "grade"}} for key in ("mine", "theirs")]
    sent = {"submitter": {"type": "user", "id": "1"}, "jobs": jobs}
    submitter = guarded.keys["submitter"]
    batch = (await guarded.asks(submitter, "POST", f"{QUEUE}/batches", sent)).json()
    assert "submitted_by" not in batch
    await Clerk(store, "test", postman(guarded.desk.keys)).work_off()
    [mine] = (await guarded.asks(operator, "GET", f"{QUEUE}/jobs?batch={batch['id']}")).json()["items"]
    assert (mine["key"], mine["band"]) == ("mine", "bulk")
    told = (await guarded.asks(submitter, "GET", f"{QUEUE}/batches/{batch['id']}")).json()["message"]
    assert "jobs.1, 'theirs': " in told
    kept = await store.batch(batch["id"])
    assert kept
    assert json.loads(kept.submission)["submitted_by"] == submitter.split("_")[1]


async def test_an_expired_key_is_good_no_longer() -> None:
    now = 1_000.0
    keys = Keys(MemoryKeyring(), lambda: now)
    door = Door(keys, clock=lambda: now, wall=lambda: now)
    made = await keys.create("viewer", lifetime=5_000_000)
    assert (await door.admit(f"Bearer {made.key}", "192.0.2.1")).by == made.record.id
    now += 5
    with pytest.raises(Unauthorized):
        await door.admit(f"Bearer {made.key}", "127.0.0.1")


async def test_a_key_that_is_revoked_elsewhere_is_refused_within_a_second() -> None:
    now = 1_000.0
    keys = Keys(MemoryKeyring())
    door = Door(keys, clock=lambda: now)
    made = await keys.create("viewer")
    await door.admit_key(made.key, "192.0.2.1")
    await keys.revoke(made.record.id)
    await door.admit_key(made.key, "192.0.2.1")
    now += 1
    with pytest.raises(Unauthorized):
        await door.admit_key(made.key, "192.0.2.1")


async def test_a_key_that_calls_too_often_is_told_when_to_come_again() -> None:
    desk = Desk(MemoryStores(), rate=1)
    app = create_app(desk, hosts=[HOST])
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as http:
        place = Place(http, desk)
        eager, other = await place.makes("viewer"), await place.makes("viewer")
        answers = [await place.asks(eager, "GET", "/api/v1/queues") for _ in range(12)]
        assert {answer.status_code for answer in answers} == {200, 429}
        assert is_problem(answers[-1], 429, "too-often")
        assert int(answers[-1].headers["retry-after"]) == answers[-1].json()["wait"] > 0
        assert (await place.asks(other, "GET", "/api/v1/queues")).status_code == 200


def test_a_key_may_call_a_little_at_once_and_then_at_its_rate() -> None:
    now = 100.0
    meter = Meter(2, lambda: now)
    for _ in range(10):
        meter.count("a")
    with pytest.raises(TooOften) as refused:
        meter.count("a")
    assert refused.value.wait == 1
    meter.count("b")
    now += 1
    meter.count("a")
    meter.count("a")
    with pytest.raises(TooOften):
        meter.count("a")


async def test_a_stream_ends_when_its_key_is_revoked(house: House) -> None:
    http = house.guest.http
    admin = (await http.post("/api/v1/keys", json={"role": "admin"})).json()["key"]
    http.headers["Authorization"] = f"Bearer {admin}"
    viewer = (await http.post("/api/v1/keys", json={"role": "viewer"})).json()
    id = (await house.guest.submits())["id"]
    url, headers = f"{house.guest.url}/jobs/{id}", {"Authorization": f"Bearer {viewer['key']}"}
    async with http.stream("GET", f"{url}/events", headers=headers, timeout=20) as answer:
        stream = events(answer)
        assert (await anext(stream)).name == "state"
        await http.delete(f"/api/v1/keys/{viewer['id']}")
        await http.post(f"{url}/cancel")
        assert "result" not in [event.name async for event in stream]
