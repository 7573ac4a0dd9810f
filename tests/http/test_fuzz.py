"""A fuzz of the description: whatever is sent, the answer is one that it names, and never a 5xx.

Some of what is sent is made by hand to come close to what a call takes, some by schemathesis from the
description alone, and some is any bytes at all. `make fuzz` does more of it, on a real server.
"""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from maitred.core.settings import Settings
from maitred.http import create_app
from maitred.service.desk import Desk
from maitred.service.foresights import Foresights
from maitred.store.memory import MemoryStores
from tests.http.guest import HOST, Guest, body

Schema = Mapping[str, Any]

DESCRIBED: dict[str, Any] = create_app(Desk(MemoryStores()), hosts=["x"]).openapi()
SCHEMA = schemathesis.openapi.from_dict(DESCRIBED)
OPERATIONS = {
    (verb, path): SCHEMA[path][verb.upper()] for path, verbs in DESCRIBED["paths"].items() for verb in verbs
}
# The stream of everything has no end.
ALL = sorted(call for call in OPERATIONS if call[1] != "/api/v1/events")
# A stream has no end while its job has none, and a check reads the whole store.
CALLS = [
    (verb, path)
    for verb, path in ALL
    if ("/queues/{queue}" in path or "/keys" in path) and not path.endswith(("/events", "/check"))
]
NAMES = [" ".join(call) for call in ALL]
HEADERS = (
    b"host",
    b"origin",
    b"authorization",
    b"last-event-id",
    b"accept",
    b"content-type",
    b"content-length",
)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
QUICKLY = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.data_too_large,
    ],
)


def _sayable(text: str) -> bool:
    """Tell whether a path can hold it: dots alone would be the way up, and halves of characters no text."""
    return text.encode(errors="ignore").decode() == text and text not in (".", "..")


ODD = [
    "/",
    ":",
    "_",
    "%",
    "\0",
    "é",
    "a/b:c_d",
    "bid",
    "bid0000000000",
    "bid9999999999",
    "x" * 300,
]
names = st.one_of(st.sampled_from(ODD), st.text(min_size=1, max_size=8).filter(_sayable))
values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-200, 200),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=10).filter(_sayable),
        st.sampled_from(["user", "7", "http://example.org/", "object-manifest", "url\nhttp://example.org/"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def _schema(schema: Schema) -> Schema:
    """Follow a reference."""
    if "$ref" in schema:
        found: Schema = DESCRIBED["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return found
    return schema


def _near(schema: Schema, depth: int = 0) -> st.SearchStrategy[Any]:
    """Give bodies that are nearly what a call takes: its fields, with values that are right and wrong."""
    schema = _schema(schema)
    if schema.get("type") == "array":
        return st.lists(_near(schema["items"], depth + 1), max_size=3)
    if "anyOf" in schema or "oneOf" in schema:
        return st.one_of([_near(each, depth + 1) for each in schema.get("anyOf") or schema["oneOf"]])
    if "properties" not in schema or depth > 3:
        return values
    fields = {name: st.one_of(_near(part, depth + 1), values) for name, part in schema["properties"].items()}
    needed = {name: fields[name] for name in schema.get("required", [])}
    return st.fixed_dictionaries(needed, optional={n: f for n, f in fields.items() if n not in needed})


def _bodies(call: Schema) -> st.SearchStrategy[Any]:
    if "requestBody" not in call:
        return st.none()
    schema = call["requestBody"]["content"]["application/json"]["schema"]
    return st.one_of(st.none(), values, _near(schema))


@pytest.fixture(params=["memory", "valkey"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def open_house() -> AsyncIterator[Guest]:
    """Have a server that listens to its store, so that what has ended can be watched, and an admin's key."""
    stores = MemoryStores()
    store = stores.queue("q")
    await store.configure(Settings())
    foresights = Foresights(stores)
    app = create_app(Desk(stores, foresights=foresights), hosts=[HOST])
    running = asyncio.create_task(foresights.run())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=f"http://{HOST}") as http:
        key = (await http.post("/api/v1/keys", json={"role": "admin"})).json()["key"]
        http.headers["Authorization"] = f"Bearer {key}"
        yield Guest(http, store)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


@pytest.mark.parametrize(("verb", "path"), CALLS, ids=[" ".join(call) for call in CALLS])
@settings(QUICKLY, max_examples=10)
@given(data=st.data())
async def test_every_answer_is_one_that_is_described(
    guest: Guest, verb: str, path: str, data: st.DataObject
) -> None:
    call = DESCRIBED["paths"][path][verb]
    known = await _known(guest)

    filled = {}
    for name in re.findall(r"\{(\w+)\}", path):
        right = st.sampled_from(known[name])
        filled[name] = data.draw(right if name == "queue" else st.one_of(right, right, names))
    url = path.format_map({name: quote(value, safe="") for name, value in filled.items()})
    asked = [each["name"] for each in call.get("parameters", []) if each["in"] == "query"]
    query = data.draw(st.dictionaries(st.sampled_from([*asked, "color"]), names, max_size=2))
    sent = data.draw(_bodies(call))
    content = None if sent is None else json.dumps(sent)
    answer = await guest.http.request(verb.upper(), url, params=query, content=content)
    _must_be_described(OPERATIONS[verb, path].Case(path_parameters=filled), answer)


@pytest.mark.parametrize(("verb", "path"), ALL, ids=NAMES)
@settings(QUICKLY, max_examples=3)
@given(data=st.data())
async def test_what_is_made_of_the_description_is_answered_as_it_says(
    open_house: Guest, verb: str, path: str, data: st.DataObject
) -> None:
    case = data.draw(OPERATIONS[verb, path].as_strategy())
    known = await _known(open_house, ended=path.endswith("/events"))
    case.path_parameters = {
        name: known[name][0] if name != "name" else value
        for name, value in (case.path_parameters or {}).items()
    }
    request = open_house.http.build_request(**case.as_transport_kwargs(base_url=f"http://{HOST}"))
    _must_be_described(case, await open_house.http.send(request))


@pytest.mark.parametrize(("verb", "path"), ALL, ids=NAMES)
@settings(QUICKLY, max_examples=6)
@given(
    content=st.binary(max_size=40),
    header=st.sampled_from(HEADERS),
    value=st.binary(max_size=20),
    query=st.binary(max_size=20),
    segment=st.binary(min_size=1, max_size=12),
    where=st.integers(0, 11),
)
async def test_any_bytes_at_all_are_answered_with_a_problem_or_well(
    open_house: Guest,
    verb: str,
    path: str,
    *,
    content: bytes,
    header: bytes,
    value: bytes,
    query: bytes,
    segment: bytes,
    where: int,
) -> None:
    """Bytes stand in the body, in each header that is read, in the query and, raw or encoded, in the path."""
    known = await _known(open_house, ended=path.endswith("/events"))
    parts = [quote(known[part[1:-1]][0]) if part[:1] == "{" else part for part in path.split("/")]
    at = len(parts) - 1 - where % (len(parts) - 1)
    raw = [part.encode() for part in parts]
    if where < 8:
        raw[at] = segment if where % 2 else quote(segment, safe="").encode()
    good = {b"host": HOST.encode(), b"authorization": open_house.http.headers["Authorization"].encode()}
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": verb.upper(),
        "scheme": "http",
        "client": ("127.0.0.1", 1),
        "path": b"/".join(raw).decode("latin-1"),
        "raw_path": b"/".join(raw),
        "query_string": query,
        "headers": list({**good, header: value}.items()),
    }
    status, headers, told = await _ask(open_house, scope, content)
    assert status < 500, told
    if status >= 400:
        assert headers[b"content-type"] == b"application/problem+json"
        assert json.loads(told)["type"].startswith("urn:maitred:problem:")


async def _ask(guest: Guest, scope: dict[str, Any], content: bytes) -> tuple[int, dict[bytes, bytes], bytes]:
    """Ask the app itself, since no client would send such bytes."""
    incoming = iter([{"type": "http.request", "body": content, "more_body": False}])
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        message = next(incoming, None)
        return message or await asyncio.Event().wait()  # type: ignore[return-value]

    async def send(message: Any) -> None:
        sent.append(message)

    await guest.http._transport.app(scope, receive, send)  # type: ignore[attr-defined]
    return sent[0]["status"], dict(sent[0]["headers"]), b"".join(each["body"] for each in sent[1:])


async def _known(guest: Guest, *, ended: bool = False) -> dict[str, list[str]]:
    """Have a job and a batch to ask about, and give what their paths hold.

    With `ended` a stream of the job has an end, and the batch is unknown, since nobody reports it here.
    """
    job = await guest.submits("k", "user:7", profile_name="p")
    opened = {"submitter": {"type": "user", "id": "7"}, "external_id": "x", "seal": False}
    answer = await guest.http.post(f"{guest.url}/batches", json=opened)
    batch = answer.json()["id"] if answer.is_success else "bid0000000000"
    await guest.http.post(f"{guest.url}/batches/{batch}/jobs", json=[body("in batch", "user:7")])
    if ended:
        await guest.asks("POST", job["id"], "/cancel")
    return {
        "queue": [guest.store.queue],
        "id": [str(job["id"]), "7", "local"],
        "bid": ["bid9999999999" if ended else str(batch)],
        "type": ["user"],
        "name": ["p"],
    }


def _must_be_described(case: schemathesis.Case[Any], answer: httpx.Response) -> None:
    case.validate_response(answer, checks=CHECKS)
    _must_be_typed(answer)


def _must_be_typed(answer: httpx.Response) -> None:
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["type"].startswith("urn:maitred:problem:")
