"""The server itself: who may call, how it describes itself, and a real one on a socket."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from maitred.client import Client
from maitred.core.settings import Settings
from maitred.errors import (
    ConfigError,
    InvalidJob,
    LongerDuration,
    NotMovable,
    OtherSubmitter,
    QueueFull,
    ServerUnreachable,
    StoreUnavailable,
    TooLarge,
    UnknownJob,
    UnknownQueue,
)
from maitred.http import Server, create_app, own_hosts, take_port
from maitred.http.server import address
from maitred.service.desk import Desk
from maitred.service.health import TAKING_WITHIN, Health
from maitred.store.memory import MemoryStores
from maitred.wire import JobBody, JobDocument
from tests.http.floor import THREE
from tests.http.guest import HOST, Guest, body, is_problem


@pytest.fixture(params=["memory"])
def kind(request: pytest.FixtureRequest) -> str:
    """What is tested here is the server, not a store."""
    return str(request.param)


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": f"{HOST}:81"},
        {"host": ""},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"ftp://{HOST}"},
        {"origin": f"http://{HOST}.evil.example"},
    ],
)
async def test_a_request_that_is_not_the_servers_own_is_forbidden(
    guest: Guest, headers: dict[str, str]
) -> None:
    before = await guest.store.snapshot()
    for path in ("/healthz", "/openapi.json", f"{guest.url}/line"):
        assert is_problem(await guest.http.get(path, headers=headers), 403, "not-own-host"), path
    put = await guest.http.put(f"{guest.url}/jobs", json=body(), headers=headers)
    assert is_problem(put, 403, "not-own-host")
    assert await guest.store.snapshot() == before


async def test_a_page_of_the_server_itself_may_ask(guest: Guest) -> None:
    answer = await guest.http.get("/healthz", headers={"origin": f"http://{HOST}"})
    assert answer.json() == {"status": "ok"}


async def test_unknown_routes_and_methods_are_problems(guest: Guest) -> None:
    assert is_problem(await guest.http.get("/nope"), 404, "no-such-route")
    assert is_problem(await guest.http.get(f"{guest.url}/jobs/"), 404, "no-such-route")
    wrong = await guest.http.patch(f"{guest.url}/jobs")
    assert is_problem(wrong, 405, "no-such-method")
    assert wrong.headers["allow"] == "GET, PUT"
    assert "GET" in (await guest.http.post("/docs")).headers["allow"]
    assert is_problem(await guest.http.get("/%ff"), 400, "malformed")


async def test_the_description_names_every_answer_that_a_call_gives(guest: Guest) -> None:
    described = (await guest.http.get("/openapi.json")).json()
    for path, calls in described["paths"].items():
        for verb, call in calls.items():
            good = [status for status in call["responses"] if status.startswith("2")]
            assert good, (verb, path)
            assert {"401", "403", "503"} <= set(call["responses"]), (verb, path)
    put = described["paths"]["/api/v1/queues/{queue}/jobs"]["put"]
    assert set(put["responses"]) == {
        "200",
        "201",
        "400",
        "401",
        "403",
        "404",
        "409",
        "413",
        "422",
        "429",
        "503",
    }
    text = json.dumps(described)
    references = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert references <= set(described["components"]["schemas"])
    assert (await guest.http.get("/docs")).status_code == 200


class LostStores(MemoryStores):
    """A store that is out of reach."""

    async def ping(self) -> None:
        raise StoreUnavailable

    async def names(self) -> list[str]:
        raise StoreUnavailable


async def test_a_lost_store_is_unavailable_and_not_ready_but_the_process_lives() -> None:
    app = create_app(Desk(LostStores()), hosts=[HOST])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=f"http://{HOST}") as http:
        assert is_problem(await http.get("/api/v1/queues"), 503, "unavailable")
        assert is_problem(await http.get("/readyz"), 503, "not-ready")
        assert (await http.get("/healthz")).status_code == 200


async def test_a_server_with_a_worker_is_ready_while_that_takes_jobs() -> None:
    worker = Health("default", "w1", 2, 0, 0, stopping=False, quiet=None, away_since=None)
    app = create_app(Desk(MemoryStores()), hosts=[HOST], workers=lambda: [worker])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=f"http://{HOST}") as http:
        refused = await http.get("/readyz")
        assert is_problem(refused, 503, "not-ready")
        assert refused.json()["detail"] == "the worker of default: it has not joined yet"
        worker = replace(worker, quiet=0.5, busy=1)
        ready = await http.get("/readyz")
        assert ready.status_code == 200
        [shown] = ready.json()["workers"]
        assert (shown["worker"], shown["taking"], shown["slots"], shown["busy"]) == ("w1", True, 2, 1)


@pytest.mark.parametrize(
    ("change", "trouble"),
    [
        ({"quiet": TAKING_WITHIN + 1}, "neither took nor parked for 11 s: a handler may block"),
        (
            {"quiet": TAKING_WITHIN + 1, "away_since": 1},
            "neither took nor parked for 11 s: the store does not",
        ),
        ({"stopping": True}, "it is stopping"),
        ({"stuck": 2}, "all its slots are held"),
        ({"stuck": 1}, ""),
        ({"away_since": 1}, ""),
        ({"slots": 0}, ""),
    ],
)
def test_a_worker_takes_jobs_if_it_took_or_parked_lately(change: dict[str, Any], trouble: str) -> None:
    well = Health("default", "w1", 2, 0, 0, stopping=False, quiet=1.0, away_since=None)
    said = replace(well, **change).trouble
    assert (trouble in said, not said) == (True, not trouble)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "example.org", "::"])
def test_a_server_refuses_to_listen_where_others_could_reach_it(host: str) -> None:
    with pytest.raises(ConfigError, match="loopback"):
        take_port(host, 0)


def test_a_port_that_is_taken_is_said_so() -> None:
    with take_port("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"127.0.0.1:{port} cannot be listened on"):
            take_port("127.0.0.1", port)


@contextlib.asynccontextmanager
async def open_house(settings: Settings) -> AsyncIterator[str]:
    stores = MemoryStores()
    await stores.queue("grading").configure(settings)
    with take_port("127.0.0.1", 0) as taken:
        server = Server(create_app(Desk(stores), hosts=own_hosts(taken)))
        serving = asyncio.create_task(server.serve([taken]))
        try:
            await server.up.wait()
            yield address(taken)
        finally:
            server.stop()
            await serving


async def test_the_client_gets_documents_and_typed_errors_from_a_real_server() -> None:
    async with open_house(Settings(max_total=3, max_body=2000)) as url, Client(url) as client:
        job = await client.put("grading", body("a/b", "user:ü/7"))
        assert (job.outcome, job.position, job.created_at.tzinfo is not None) == ("created", 1, True)
        assert (await client.job("grading", job.id)).key == "a/b"
        assert (await client.submitter("grading", "user", "ü/7")).jobs == [job.id]
        assert (await client.release("grading", job.id)).band == "front"
        refusals = (
            (client.release("grading", job.id), NotMovable),
            (client.job("grading", "a/b"), UnknownJob),
            (client.line("nope"), UnknownQueue),
            (client.put("grading", body("a/b", "user:8")), OtherSubmitter),
            (client.put("grading", {}), InvalidJob),
            (client.put("grading", body(metadata={"x": "x" * 2000})), TooLarge),
        )
        for call, error in refusals:
            with pytest.raises(error):
                await call
        first, second, full = await client.put_many("grading", [body("c"), body("d"), body("e")])
        assert not isinstance(first, Exception)
        assert not isinstance(second, Exception)
        assert isinstance(full, QueueFull)
        assert (full.which, full.limit) == ("total", 3)
        assert (await client.pause("grading", "lunch")).paused
        assert (await client.cancel("grading", job.id, "enough")).code == "cancelled"
        await client.remove("grading", job.id)
        line = (await client.line("grading")).items
        assert [item.key for item in line if isinstance(item, JobDocument)] == ["d", "c"]


async def test_the_client_asks_for_classes_and_makes_jobs_shorter() -> None:
    async with open_house(THREE) as url, Client(url) as client:
        job = await client.put("grading", JobBody.model_validate({**body("a"), "class": "slow"}))
        assert (job.class_, job.duration) == ("slow", 30.0)
        assert [each.name for each in (await client.queue("grading")).classes] == ["fast", "medium", "slow"]
        shorter = await client.shorten("grading", job.id, 5)
        assert (shorter.class_, shorter.duration) == ("medium", 5.0)
        with pytest.raises(LongerDuration, match="only be lowered"):
            await client.shorten("grading", job.id, 6)
        with pytest.raises(InvalidJob) as refused:
            await client.shorten("grading", job.id, 31)
        assert [fault.path for fault in refused.value.faults] == ["seconds"]


def test_the_description_has_classes_durations_and_what_shortening_takes() -> None:
    schemas = create_app(Desk(MemoryStores()), hosts=[HOST]).openapi()["components"]["schemas"]
    assert {"class", "duration"} <= set(schemas["JobBody"]["properties"])
    assert schemas["DurationBody"]["required"] == ["seconds"]
    assert set(schemas["ClassDocument"]["required"]) == {"name", "cap", "limit", "running"}
    assert {"classes", "elastic", "interactive"} <= set(schemas["SettingsDocument"]["properties"])
    assert {"class", "elastic", "duration"} <= set(schemas["RunningJob"]["properties"])


async def test_the_client_can_ask_about_a_submitter_whose_id_is_a_way_up() -> None:
    async with open_house(Settings()) as url, Client(url) as client:
        job = await client.put("grading", body("a", "user:.."))
        assert (await client.submitter("grading", "user", "..")).jobs == [job.id]


async def test_a_client_without_a_server_says_so() -> None:
    with take_port("127.0.0.1", 0) as taken:
        nobody = address(taken)
    async with Client(nobody, retries=()) as client:
        with pytest.raises(ServerUnreachable, match=nobody):
            await client.queues()


async def test_a_real_server_reads_no_more_of_a_body_than_it_takes() -> None:
    async with open_house(Settings(max_body=1000)) as url, httpx.AsyncClient(base_url=url) as http:

        async def endless() -> AsyncIterator[bytes]:
            for _ in range(100):
                yield b"x" * 100

        answer = await http.put("/api/v1/queues/grading/jobs", content=endless())
        assert is_problem(answer, 413, "too-large")
