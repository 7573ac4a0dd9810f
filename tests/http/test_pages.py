"""Browsers at the door: pages from elsewhere, strict headers, and the page of calls."""

import re
from base64 import b64encode
from collections.abc import AsyncIterator
from hashlib import sha256
from html import escape

import httpx
import pytest

from maitred.config import load
from maitred.core.settings import Settings
from maitred.errors import ConfigError
from maitred.http import create_app
from maitred.service.desk import Desk
from maitred.store.memory import MemoryStores
from tests.http.guest import HOST, Guest, body, is_problem

PAGE = "https://grades.example.org"
OTHER = "https://evil.example"
STRICT = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


@pytest.fixture(params=["memory"])
def kind(request: pytest.FixtureRequest) -> str:
    """What is tested here is the server, not a store."""
    return str(request.param)


@pytest.fixture
async def named() -> AsyncIterator[httpx.AsyncClient]:
    """A server whose settings name one page."""
    stores = MemoryStores()
    await stores.queue("q").configure(Settings())
    app = create_app(Desk(stores), hosts=[HOST], cors=[PAGE])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=f"http://{HOST}") as http:
        yield http


def preflight(
    origin: str, method: str = "PUT", headers: str = "authorization, content-type"
) -> dict[str, str]:
    return {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": headers,
    }


def is_open_to(answer: httpx.Response) -> str | None:
    assert "access-control-allow-credentials" not in answer.headers
    origin: str | None = answer.headers.get("access-control-allow-origin")
    return origin


async def test_unless_it_is_set_no_page_from_elsewhere_may_call(guest: Guest) -> None:
    key = (await guest.http.post("/api/v1/keys", json={"role": "admin"})).json()["key"]
    asked = await guest.http.options(f"{guest.url}/jobs", headers=preflight(PAGE))
    assert is_problem(asked, 405, "no-such-method")
    assert is_open_to(asked) is None
    headers = {"Origin": PAGE, "Authorization": f"Bearer {key}"}
    assert is_open_to(await guest.http.get("/api/v1/queues", headers=headers)) is None


@pytest.mark.parametrize("keys", [False, True])
async def test_a_page_that_is_named_asks_first_without_a_key(named: httpx.AsyncClient, keys: bool) -> None:
    headers = {"Origin": PAGE}
    if keys:
        key = (await named.post("/api/v1/keys", json={"role": "admin"})).json()["key"]
        headers["Authorization"] = f"Bearer {key}"
    asked = await named.options("/api/v1/queues/q/jobs", headers=preflight(PAGE))
    assert (asked.status_code, is_open_to(asked)) == (204, PAGE)
    assert "Authorization" in asked.headers["access-control-allow-headers"]
    put = await named.put("/api/v1/queues/q/jobs", json=body(), headers=headers)
    assert (put.status_code, is_open_to(put)) == (201, PAGE)
    assert "Origin" in put.headers["vary"]
    assert "Retry-After" in put.headers["access-control-expose-headers"]
    refused = await named.get("/api/v1/queues/nope", headers=headers)
    assert (refused.status_code, is_open_to(refused)) == (404, PAGE)


@pytest.mark.parametrize("origin", [OTHER, f"{PAGE}.evil.example", "null", "http://grades.example.org"])
async def test_no_other_page_is_let_in(named: httpx.AsyncClient, origin: str) -> None:
    for asked in (preflight(origin), preflight(PAGE, "PATCH"), preflight(PAGE, headers="x-other")):
        answer = await named.options("/api/v1/queues/q/jobs", headers=asked)
        assert is_problem(answer, 403, "not-own-host")
        assert is_open_to(answer) is None
    refused = await named.put("/api/v1/queues/q/jobs", json=body(), headers={"Origin": origin})
    assert is_problem(refused, 403, "not-own-host")
    key = (await named.post("/api/v1/keys", json={"role": "admin"})).json()["key"]
    headers = {"Origin": origin, "Authorization": f"Bearer {key}"}
    assert is_open_to(await named.get("/api/v1/queues", headers=headers)) is None


@pytest.mark.parametrize("wrong", ["*", "grades.example.org", f"{PAGE}/", "null", "https://*.example.org"])
def test_the_settings_name_whole_origins(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    monkeypatch.setenv("MAITRED_SERVER__CORS", f"{PAGE}, HTTP://localhost:3000")
    assert load().server.cors == (PAGE, "http://localhost:3000")
    monkeypatch.setenv("MAITRED_SERVER__CORS", wrong)
    with pytest.raises(ConfigError, match=r"server\.cors: .*allowed is an origin"):
        load()


def test_the_servers_settings_come_from_the_environment_beside_the_stores_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MAITRED_SERVER", "/usr/bin/redis-server")
    monkeypatch.setenv("MAITRED_SERVER__RATE", "7")
    monkeypatch.setenv("MAITRED_SERVER__PATIENCE", "3s")
    assert (load().server.rate, load().server.patience) == (7, 3_000_000)
    monkeypatch.setenv("MAITRED_SERVER__RATS", "7")
    with pytest.raises(ConfigError, match=r"server\.rats: there is no such setting; did you mean rate"):
        load()


async def test_every_answer_is_strict(guest: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    for method, path in (
        ("GET", "/healthz"),
        ("GET", "/docs"),
        ("GET", "/openapi.json"),
        ("GET", "/nope"),
        ("PATCH", "/healthz"),
        ("GET", "/%ff"),
        ("GET", guest.url),
        ("POST", "/api/v1/keys/local/rotate"),
    ):
        answer = await guest.http.request(method, path)
        assert {name: answer.headers.get(name) for name in STRICT} == STRICT, path
        assert answer.headers.get_list("cache-control") == ["no-store"]
        [policy] = answer.headers.get_list("content-security-policy")
        assert policy.startswith("default-src 'none';")
        assert "frame-ancestors 'none'" in policy
    made = await guest.http.post("/api/v1/keys", json={"role": "viewer"})
    assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")


async def test_what_breaks_is_strict_too() -> None:
    class BrokenStores(MemoryStores):
        async def names(self) -> list[str]:
            raise RuntimeError("broken")

    app = create_app(Desk(BrokenStores()), hosts=[HOST])
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as http:
        answer = await http.get("/api/v1/queues")
        assert is_problem(answer, 500, "error")
        assert STRICT.items() <= dict(answer.headers).items()


async def test_the_page_of_calls_shows_all_of_them_and_loads_nothing(guest: Guest) -> None:
    answer = await guest.http.get("/docs")
    assert answer.headers["content-type"].startswith("text/html")
    described = (await guest.http.get("/openapi.json")).json()
    for path, calls in described["paths"].items():
        for method, call in calls.items():
            assert f"<b>{method.upper()}</b> <code>{path}</code>" in answer.text
            assert escape(call["summary"]) in answer.text
    assert "curl -X PUT" in answer.text
    assert not re.findall(r"<script|<link|<img|<iframe|\bsrc=|\bstyle=|\bon\w+=|@import|url\(", answer.text)
    [style] = re.findall(r"<style>(.*?)</style>", answer.text, re.DOTALL)
    digest = b64encode(sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in answer.headers["content-security-policy"]
    links = set(re.findall(r"href='#([^']+)'", answer.text))
    assert links
    assert links <= set(re.findall(r"<details id='([^']+)'", answer.text))


async def test_the_page_of_calls_is_enough_to_send_a_call_and_to_check_a_callback(guest: Guest) -> None:
    page = (await guest.http.get("/docs")).text
    addresses = re.findall(r"<pre>curl -X \w+ &#x27;(.*?)&#x27;", page)
    assert "http://127.0.0.1:7500/api/v1/queues/default/jobs" in addresses
    assert not [address for address in addresses if "{" in address], "curl would read that as a list"
    for word in ("Authorization: Bearer KEY", "maitred keys secret", "webhook-signature", "job.ended"):
        assert f"<code>{word}</code>" in page


async def test_details_of_unknown_routes_and_methods_are_sentences(guest: Guest) -> None:
    assert (await guest.http.get("/nope")).json()["detail"].startswith("there is nothing at this path")
    wrong = (await guest.http.patch(f"{guest.url}/jobs")).json()
    assert wrong["detail"] == "PATCH is not allowed here; allowed is GET, PUT"
    assert (await guest.http.post("/docs")).headers["allow"] == "GET, HEAD"
