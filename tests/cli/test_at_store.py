"""Every verb works on the store itself, where there is no server or none is wanted."""

import asyncio
import json
from collections.abc import Iterator

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from maitred.cli.in_process import InProcess
from maitred.core.settings import Settings
from maitred.store.connect import connect
from maitred.store.valkey.embedded import Embedded
from tests.cli.conftest import Terminal


@pytest.fixture
def store(terminal: Terminal) -> Iterator[str]:
    """The url of a store on the terminal's data directory, with a queue and without a server."""

    async def configure(url: str) -> None:
        stores = connect(url)
        await stores.queue("default").configure(Settings())
        await stores.close()

    with Embedded(terminal.data) as embedded:
        asyncio.run(configure(embedded.url))
        yield embedded.url


def test_verbs_act_on_the_store_of_the_data_directory_or_on_one_that_is_named(
    terminal: Terminal, store: str
) -> None:
    assert "--local asks the store itself" in terminal.types("line").stderr
    job = terminal.gets("submit", "--local", "--key", "a", "--", "ls")
    assert (job["outcome"], job["position"]) == ("created", 1)
    assert [each["key"] for each in terminal.gets("line", "--store", store)["items"]] == ["a"]
    assert terminal.types("show", "nobody", "--local").exit_code == 4
    assert terminal.types("release", job["id"], "--local", "--nonce", "0").exit_code == 5
    assert terminal.tells("check", "--local") == "default is sound."
    terminal.gets("cancel", job["id"], "--local")
    events = terminal.types("watch", job["id"], "--local", "--json")
    assert (events.exit_code, json.loads(events.stdout.splitlines()[-1])["event"]) == (1, "result")


def test_whoever_has_the_store_needs_no_key_and_is_in_the_audit_log(terminal: Terminal, store: str) -> None:
    del store
    terminal.gets("keys", "create", "--role", "admin", "--local")
    terminal.gets("pause", "--local", "--reason", "lunch")
    log = terminal.gets("audit", "--local")["items"]
    assert [(each["name"], each["address"]) for each in log] == [("admin", "the store")] * 2
    assert log[0]["action"] == "POST /api/v1/queues/{queue}/pause"


def test_a_store_that_nobody_made_is_made_for_keys_only(terminal: Terminal) -> None:
    refused = terminal.types("line", "--local")
    assert (refused.exit_code, "start one with `maitred up`" in refused.stderr) == (1, True)
    assert not terminal.data.exists()


# ---------------------------------------------------------------- an app in this process


async def test_an_answer_comes_piece_by_piece_and_to_leave_is_to_hang_up() -> None:
    left = asyncio.Event()

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            await send({"type": "http.response.body", "body": b"first", "more_body": True})
            await asyncio.Event().wait()
        finally:
            left.set()

    async with httpx.AsyncClient(transport=InProcess(app), base_url="http://store") as http:
        async with http.stream("GET", "/") as answer:
            assert await anext(answer.aiter_raw()) == b"first"
            assert not left.is_set()
        assert left.is_set()


@pytest.mark.parametrize("begun", [False, True])
async def test_what_an_app_raises_reaches_whoever_called_it(*, begun: bool) -> None:
    async def app(_scope: Scope, receive: Receive, send: Send) -> None:
        asked: Message = await receive()
        if begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        raise LookupError(asked["body"])

    async with httpx.AsyncClient(transport=InProcess(app), base_url="http://store") as http:
        with pytest.raises(LookupError, match="hello"):
            await http.post("/", content=b"hello")
