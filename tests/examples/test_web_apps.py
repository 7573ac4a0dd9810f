"""The web apps of `examples/` submit, show a job's place and hear of its end, beside real servers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from examples import django_app, fastapi_app
from examples.grading import q
from maitred.core.settings import Settings
from maitred.http import Server, create_app, own_hosts, take_port
from maitred.http.server import address
from maitred.service.desk import Desk
from maitred.service.foresights import Foresights
from maitred.service.keyring import LOCAL, Keys
from maitred.store.memory import MemoryStores
from maitred.worker import Worker
from tests.waiting import eventually
from tests.working import at_work

TEXT = "Call me Ishmael."
APPS: dict[str, tuple[Any, dict[str, Any]]] = {
    "fastapi": (fastapi_app.app, {"json": {"text": TEXT}}),
    "django": (django_app.application(), {"content": TEXT}),
}


@asynccontextmanager
async def served(app: ASGIApp, port: Any, *, lifespan: bool = True) -> AsyncIterator[str]:
    """Serve an app on a port that was taken; give its address."""
    server = Server(app)
    if not lifespan:
        server.config.lifespan = "off"
    serving = asyncio.create_task(server.serve([port]))
    await server.up.wait()
    try:
        yield address(port)
    finally:
        server.stop()
        await serving


@pytest.fixture
async def stores(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MemoryStores]:
    """Override: a house with a queue and no worker yet, which the environment names."""
    stores = MemoryStores()
    await stores.queue(q.name).configure(Settings(private_addresses=True))
    with take_port("127.0.0.1", 0) as port:
        desk = Desk(stores, foresights=Foresights(stores))
        async with served(create_app(desk, hosts=own_hosts(port)), port) as house:
            monkeypatch.setenv("MAITRED_URL", house)
            monkeypatch.setenv("WEBHOOK_SECRETS", " ".join(await Keys(stores.keyring).signing(LOCAL)))
            yield stores


@pytest.fixture(params=APPS)
async def site(
    request: pytest.FixtureRequest, stores: MemoryStores, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[httpx.AsyncClient, dict[str, Any]]]:
    app, essay = APPS[request.param]
    with take_port("127.0.0.1", 0) as port:
        monkeypatch.setenv("PUBLIC_URL", address(port))
        async with (
            served(app, port, lifespan=request.param == "fastapi") as home,
            httpx.AsyncClient(base_url=home) as http,
        ):
            yield http, essay


async def test_an_essay_has_a_place_then_a_result_and_its_grade_comes_by_itself(
    stores: MemoryStores, site: tuple[httpx.AsyncClient, dict[str, Any]]
) -> None:
    http, essay = site
    assert (await http.get("/essays/ada")).status_code == 404
    answer = await http.post("/essays/ada", **essay)
    assert answer.status_code == 202, answer.text
    assert answer.json().items() >= {"state": "pending", "position": 1, "result": None}.items()
    assert answer.json()["because"] == "no worker serves 'handler:grade' at the moment"
    async with at_work(Worker(stores.queue(q.name), q.handlers, 1)):
        grades = await eventually(lambda: _json(http, "/grades"))
    assert grades == {"ada": {"words": 3, "points": 3}}
    seen = await _json(http, "/essays/ada")
    assert (seen["state"], seen["position"], seen["result"]) == ("completed", None, grades["ada"])


async def test_an_essay_behind_another_one_is_told_when_it_will_start(
    stores: MemoryStores, site: tuple[httpx.AsyncClient, dict[str, Any]]
) -> None:
    http, essay = site
    await stores.queue(q.name).join("busy", 1, ["handler:grade"])
    for student in ("bob", "ada"):
        await http.post(f"/essays/{student}", **essay)
    seen = await _json(http, "/essays/ada")
    assert (seen["position"], seen["because"]) == (1, "all slots are busy")

    async def expected() -> Any:
        return (await _json(http, "/essays/ada"))["expected"]

    assert await eventually(expected)


async def test_a_message_that_the_queue_did_not_sign_is_turned_away(
    site: tuple[httpx.AsyncClient, dict[str, Any]],
) -> None:
    http, _ = site
    forged = b'{"type": "job.ended", "data": {"submitter": {"id": "eve"}, "result": {"points": 10}}}'
    signed = {"webhook-id": "1", "webhook-timestamp": "1", "webhook-signature": "v1,AAAA"}
    assert (await http.post("/maitred", content=forged)).status_code == 401
    assert (await http.post("/maitred", content=forged, headers=signed)).status_code == 401
    assert "eve" not in await _json(http, "/grades")


async def _json(http: httpx.AsyncClient, path: str) -> Any:
    return (await http.get(path)).json()


@pytest.fixture(autouse=True)
def _nobody_has_submitted() -> None:
    for app in (fastapi_app, django_app):
        for kept in (app.submitted, app.grades, app.seen):
            kept.clear()
