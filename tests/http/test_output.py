"""What a job said and left behind over HTTP, through the client and from Python."""

from collections.abc import AsyncIterator

import httpx
import pytest

from maitred import Queue, UnknownArtifact, UnknownJob
from maitred.client import Client
from maitred.core.job import Finish, Start
from maitred.core.output import Artifact, Part, Saying
from maitred.core.settings import MINUTE, Settings
from maitred.store.port import Store, Stores
from tests.http.guest import HOST, Guest, is_problem

NEED = "handler:grade"
PICTURE = b"\x89PNG\xff"


@pytest.fixture
async def start(guest: Guest) -> Start:
    """A job that runs."""
    await guest.store.configure(Settings(lease=60 * MINUTE))
    await guest.submits("talks")
    [start] = (await guest.store.join("w", 1, [NEED], b'{"sandbox": ["network"]}')).starts
    return start


@pytest.fixture
async def client(http: httpx.AsyncClient) -> AsyncIterator[Client]:
    async with Client(f"http://{HOST}", transport=http._transport) as client:
        yield client


async def say(store: Store, start: Start, *parts: Part) -> None:
    assert await store.say("w", [Saying(start.lease, parts)]) == []


async def test_output_is_given_in_pieces_that_can_be_read_on(guest: Guest, start: Start) -> None:
    await say(
        guest.store, start, Part("stdout", b"one\n"), Part("stderr", b"\xff!", 7), Part("stdout", b"two")
    )
    page = await guest.sees(f"/jobs/{start.id}/output", limit=2)
    assert [(each["number"], each["stream"], each["text"], each["cut"]) for each in page["items"]] == [
        (1, "stdout", "one\n", 0),
        (2, "stderr", "\ufffd!", 7),
    ]
    assert page["items"][0]["at"] == "1970-01-01T00:16:40.000000Z"
    assert page["items"][0]["attempt"] == 1
    assert (page["first"], page["next"], page["ended"]) == (1, 3, False)
    rest = await guest.sees(f"/jobs/{start.id}/output", **{"from": 3})
    assert [each["text"] for each in rest["items"]] == ["two"]
    assert rest["next"] == 4
    await guest.store.finish("w", [Finish(start.lease)])
    after = await guest.sees(f"/jobs/{start.id}/output", **{"from": 4})
    assert (after["items"], after["next"], after["ended"]) == ([], 4, True)


async def test_one_stream_can_be_asked_for(guest: Guest, start: Start) -> None:
    lines = [Part("stdout" if number % 300 else "stderr", b"%d" % number) for number in range(1, 901)]
    await say(guest.store, start, *lines)
    page = await guest.sees(f"/jobs/{start.id}/output", stream="stderr", limit=2)
    assert [each["text"] for each in page["items"]] == ["300", "600"]
    assert page["next"] == 601
    rest = await guest.sees(f"/jobs/{start.id}/output", stream="stderr", **{"from": 601})
    assert ([each["text"] for each in rest["items"]], rest["next"]) == (["900"], 901)
    refused = await guest.asks("GET", start.id, "/output?stream=loud")
    assert is_problem(refused, 422, "invalid")


async def test_as_plain_text_it_is_what_was_printed_with_what_was_cut(guest: Guest, start: Start) -> None:
    euro = "€".encode()
    said = [Part("stdout", b"a " + euro[:1]), Part("progress", b"{}"), Part("stdout", euro[1:])]
    await say(guest.store, start, *said, Part("stdout", b"end\n", 12), Part("stderr", b"x", 1))
    plain = await guest.asks("GET", start.id, "/output", headers={"Accept": "text/plain"})
    assert plain.headers["content-type"] == "text/plain; charset=utf-8"
    assert plain.headers["x-content-type-options"] == "nosniff"
    assert plain.text == "a €\n[12 bytes cut]\nend\n[1 bytes cut]\nx"


async def test_as_plain_text_it_tells_that_the_oldest_went(guest: Guest, start: Start) -> None:
    most = Settings().output_limit
    await say(guest.store, start, Part("stdout", b"a" * 100), Part("stdout", b"b" * (most - 32)))
    plain = await guest.asks("GET", start.id, "/output", headers={"Accept": "text/plain"})
    assert plain.text.startswith("[the beginning is not kept any more]\nbbb")
    after = await guest.asks("GET", start.id, "/output?from=2", headers={"Accept": "text/plain"})
    assert after.text.startswith("bbb")


async def test_the_next_piece_is_never_one_that_is_not_kept_any_more(guest: Guest, start: Start) -> None:
    await say(guest.store, start, Part("stdout", b"c" * Settings().output_limit))
    page = await guest.sees(f"/jobs/{start.id}/output")
    assert (page["items"], page["first"], page["next"]) == ([], 2, 2)


async def test_an_artifact_is_given_as_it_is_to_be_saved(guest: Guest, start: Start) -> None:
    files = [Artifact("out/a é.png", "image/png", PICTURE), Artifact("x.html", "text/html\r\nX: y", b"<b>")]
    await guest.store.keep("w", start.lease, files)
    found = await guest.asks("GET", start.id, "/artifacts/out%2Fa%20%C3%A9.png")
    assert found.content == PICTURE
    assert found.headers["content-type"] == "image/png"
    assert found.headers["x-content-type-options"] == "nosniff"
    assert found.headers["content-disposition"] == "attachment; filename*=UTF-8''a%20%C3%A9.png"
    odd = await guest.asks("GET", start.id, "/artifacts/x.html?version=1")
    assert (odd.content, odd.headers["content-type"]) == (b"<b>", "application/octet-stream")
    document = (await guest.asks("GET", start.id)).json()
    assert document["artifacts"][0] == {"name": "out/a é.png", "content_type": "image/png", "size": 5}


async def test_what_is_not_there_is_not_found(guest: Guest, start: Start) -> None:
    for what in ("/output", "/artifacts/a"):
        assert is_problem(await guest.asks("GET", "nobody", what), 404, "unknown-job")
        assert is_problem(await guest.asks("GET", start.id, f"{what}?version=2"), 404, "unknown-job")
    assert is_problem(await guest.asks("GET", start.id, "/artifacts/a"), 404, "unknown-artifact")


async def test_a_job_tells_its_progress_and_a_worker_its_sandbox(guest: Guest, start: Start) -> None:
    assert (await guest.asks("GET", start.id)).json()["progress"] is None
    await say(guest.store, start, Part("progress", b'{"fraction": 0.4, "message": "compiling"}'))
    shown = (await guest.asks("GET", start.id)).json()["progress"]
    assert shown == {"fraction": 0.4, "message": "compiling"}
    [worker] = (await guest.sees("/workers"))["items"]
    assert worker["sandbox"] == ["network"]


async def test_the_client_and_the_queue_give_the_same(
    client: Client, stores: Stores, guest: Guest, start: Start
) -> None:
    await say(guest.store, start, *(Part("stdout", b"%d" % number) for number in range(5)))
    await guest.store.keep("w", start.lease, [Artifact("out/a.png", "image/png", PICTURE)])
    name, queue = guest.store.queue, Queue(guest.store.queue, stores)
    said = await client.output(name, start.id, stream="stdout", begin=2, limit=2)
    assert [piece.text for piece in said.items] == ["1", "2"]
    assert said == await queue.output(start.id, stream="stdout", begin=2, limit=2)
    assert await client.artifact(name, start.id, "out/a.png", 1) == PICTURE
    assert await queue.artifact(start.id, "out/a.png") == PICTURE
    for asked in (client.artifact(name, start.id, "b"), queue.artifact(start.id, "b")):
        with pytest.raises(UnknownArtifact):
            await asked
    with pytest.raises(UnknownJob):
        await client.output(name, "nobody")
    shown = await client.job(name, start.id)
    assert [(each.name, each.size) for each in shown.artifacts] == [("out/a.png", 5)]
