"""A fuzz of the description: whatever is sent, the answer is one that it names, and never a 5xx."""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maitred.http import create_app
from maitred.service.desk import Desk
from maitred.store.memory import MemoryStores
from tests.http.guest import Guest, body

Schema = Mapping[str, Any]

DESCRIBED: dict[str, Any] = create_app(Desk(MemoryStores()), hosts=["x"]).openapi()
# A stream has no end while its job has none, and a check reads the whole store.
CALLS = sorted(
    (verb, path)
    for path, verbs in DESCRIBED["paths"].items()
    for verb in verbs
    if ("/queues/{queue}" in path or "/keys" in path) and not path.endswith(("/events", "/check"))
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


@pytest.mark.parametrize(("verb", "path"), CALLS, ids=[" ".join(call) for call in CALLS])
@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@given(data=st.data())
async def test_every_answer_is_one_that_is_described(
    guest: Guest, verb: str, path: str, data: st.DataObject
) -> None:
    call = DESCRIBED["paths"][path][verb]
    job, batch = await _something(guest)
    known = {
        "queue": [guest.store.queue],
        "id": [job, "7", "local"],
        "bid": [batch],
        "type": ["user"],
        "name": ["p"],
    }

    def fill(found: re.Match[str]) -> str:
        right = st.sampled_from(known[found[1]])
        often = right if found[1] == "queue" else st.one_of(right, right, names)
        return quote(data.draw(often), safe="")

    url = re.sub(r"\{(\w+)\}", fill, path)
    asked = [each["name"] for each in call.get("parameters", []) if each["in"] == "query"]
    query = data.draw(st.dictionaries(st.sampled_from([*asked, "color"]), names, max_size=2))
    sent = data.draw(_bodies(call))
    content = None if sent is None else json.dumps(sent)
    answer = await guest.http.request(verb.upper(), url, params=query, content=content)
    assert answer.status_code < 500, (url, query, content, answer.text)
    assert str(answer.status_code) in call["responses"], (url, query, content, answer.text)
    _must_be_typed(answer)


async def _something(guest: Guest) -> tuple[str, str]:
    """Have a job and an open batch to ask about; give their ids."""
    job = await guest.submits("k", "user:7", profile_name="p")
    opened = {"submitter": {"type": "user", "id": "7"}, "external_id": "x", "seal": False}
    answer = await guest.http.post(f"{guest.url}/batches", json=opened)
    batch = answer.json()["id"] if answer.is_success else "bid0000000000"
    await guest.http.post(f"{guest.url}/batches/{batch}/jobs", json=[body("in batch", "user:7")])
    return str(job["id"]), str(batch)


def _must_be_typed(answer: httpx.Response) -> None:
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["type"].startswith("urn:maitred:problem:")
