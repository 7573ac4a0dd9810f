"""The examples in the description: each can be sent as it stands, and is answered well."""

from typing import Any

import pytest

from maitred.core.job import Finish
from maitred.core.output import Artifact
from maitred.core.settings import MINUTE, Settings
from maitred.http import create_app
from maitred.http.describe import EXAMPLE_BATCH, EXAMPLE_BODY
from maitred.service.desk import Desk
from maitred.store.memory import MemoryStores
from tests.http.guest import Guest
from tests.http.test_batches import clerk_works, jobs_end

DESCRIBED: dict[str, Any] = create_app(Desk(MemoryStores()), hosts=["x"]).openapi()
# Streams are read elsewhere, by those who can end them.
CALLS = [
    (verb, path)
    for path, verbs in DESCRIBED["paths"].items()
    for verb in verbs
    if not path.endswith("/events")
]


@pytest.fixture
def kind() -> str:
    return "memory"


@pytest.fixture
def queue_name() -> str:
    return "default"


async def prepare(guest: Guest, verb: str, path: str) -> None:
    """Let there be what an example is about: its job, its batch, and how far they must have come."""
    _, of_batch, what = path.partition("/batches/{bid}")
    if of_batch:
        opened = what in ("/jobs", "/seal")
        sent = {**EXAMPLE_BATCH, "payload": None, "seal": False} if opened else EXAMPLE_BATCH
        await guest.http.post(f"{guest.url}/batches", json=sent)
        if not opened:
            await clerk_works(guest.store)
        if what == "/resume":
            await guest.http.post(f"{guest.url}/batches/bid0000000000/hold")
        if verb == "delete" or what in ("/report", "/retry", "/update-report"):
            await jobs_end(guest.store, "", "error")
            await clerk_works(guest.store)
        return
    _, of_job, what = path.partition("/jobs/{id}")
    if of_job:
        id = (await guest.puts(EXAMPLE_BODY)).json()["id"]
        before = {"/resume": "/hold", "/retry": "/cancel"}
        if what in before:
            await guest.asks("POST", id, before[what])
        if "artifacts" in what:
            await makes(guest, "report.txt")


async def makes(guest: Guest, name: str) -> None:
    """Let the job run, and leave a file behind."""
    await guest.store.configure(Settings(lease=60 * MINUTE))
    [start] = (await guest.store.join("w", 1, ["command"])).starts
    await guest.store.keep("w", start.lease, [Artifact(name, "text/plain", b"fine")])
    await guest.store.finish("w", [Finish(start.lease)])


@pytest.mark.parametrize(("verb", "path"), CALLS, ids=[" ".join(call) for call in CALLS])
async def test_every_example_is_answered_well(guest: Guest, verb: str, path: str) -> None:
    await prepare(guest, verb, path)
    call = DESCRIBED["paths"][path][verb]
    asked = call.get("parameters", [])
    names = {each["name"]: each["example"] for each in asked if each["in"] == "path"}
    query = {each["name"]: each["example"] for each in asked if each["in"] == "query" and "example" in each}
    example = None
    if "requestBody" in call:
        example = call["requestBody"]["content"]["application/json"]["example"]
    url = path.format_map(names)
    answer = await guest.http.request(verb.upper(), url, params=query, json=example)
    # The key of those who call without one is the only one whose id is known before, and stays.
    stays = (verb, path) == ("delete", "/api/v1/keys/{id}")
    assert answer.is_success or stays, answer.text
    assert str(answer.status_code) in call["responses"]
