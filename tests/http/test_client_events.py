"""The client watches a job: typed events to its end, and streams that break are taken up again."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence

import httpx
import pytest

from maitred.client import Client
from maitred.client.stream import Message, messages
from maitred.core.job import Finish
from maitred.core.settings import Settings
from maitred.errors import NotFound, ServerUnreachable, StoreUnavailable, UnknownJob, UnknownQueue
from maitred.http import Server, create_app, own_hosts, take_port
from maitred.http.server import address
from maitred.service.desk import Desk
from maitred.store.memory import MemoryStores
from maitred.store.port import Store
from maitred.wire import PlaceEvent, ResetEvent, ResultEvent, StateEvent, WatchEvent
from tests.http.guest import body

PATIENCE = 30


@contextlib.asynccontextmanager
async def open_house() -> AsyncIterator[tuple[Client, Store]]:
    """A real server over a store that the test works on by hand."""
    stores = MemoryStores()
    await stores.queue("grading").configure(Settings())
    with take_port("127.0.0.1", 0) as taken:
        server = Server(create_app(Desk(stores), hosts=own_hosts(taken)))
        serving = asyncio.create_task(server.serve([taken]))
        await server.up.wait()
        try:
            async with Client(address(taken)) as client, asyncio.timeout(PATIENCE):
                yield client, stores.queue("grading")
        finally:
            server.stop()
            await serving


async def test_a_job_is_watched_from_its_place_to_its_result() -> None:
    async with open_house() as (client, store):
        job = await client.put("grading", body())
        events = client.watch("grading", job.id)
        first, place = await anext(events), await anext(events)
        assert isinstance(first, StateEvent)
        assert (first.phase, first.version, first.id is not None) == ("waiting", 1, True)
        assert isinstance(place, PlaceEvent)
        assert (place.position, place.id) == (1, None)
        assert place.waiting_for
        assert place.waiting_for.code == "no-worker"
        shift = await store.join("w", 1, ["handler:grade"])
        running = await anext(events)
        while isinstance(running, PlaceEvent):
            running = await anext(events)
        assert isinstance(running, StateEvent)
        assert (running.phase, running.worker, running.duration) == ("running", "w", 600.0)
        await store.finish("w", [Finish(shift.starts[0].lease, result='{"said": "a\u2028b"}'.encode())])
        ended, result = [event async for event in events]
        assert isinstance(ended, StateEvent)
        assert ended.state == "completed"
        assert isinstance(result, ResultEvent)
        assert result.result == {"said": "a\u2028b"}, "only a line feed ends a line"
        assert [event async for event in client.watch("grading", job.id, last=result.id)] == []
        missed = [event async for event in client.watch("grading", job.id, last=running.id)]
        assert missed == [ended, result], "whoever comes back hears what it has not heard, and nothing twice"


async def test_a_deletion_is_the_end() -> None:
    async with open_house() as (client, store):
        job = await client.put("grading", body())
        events = client.watch("grading", job.id)
        await anext(events)
        await store.remove(job.id)
        *_, last = [event async for event in events]
        assert isinstance(last, StateEvent)
        assert last.state == "deleted"


async def test_an_unknown_job_queue_or_server_is_said_so_at_once() -> None:
    async with open_house() as (client, _):
        for queue, id, error in (("grading", "nobody", UnknownJob), ("nope", "nobody", UnknownQueue)):
            with pytest.raises(error):
                await anext(client.watch(queue, id))
    with pytest.raises(ServerUnreachable, match=client.address):
        async with Client(client.address, retries=()) as nobody:
            await anext(nobody.watch("grading", "nobody"))


# ---------------------------------------------------------------- a server that breaks off


class Chunks(httpx.AsyncByteStream):
    """The body of an answer; None stands for a connection that breaks."""

    def __init__(self, chunks: Sequence[bytes | None]) -> None:
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            if chunk is None:
                raise httpx.ReadError("broken")
            yield chunk


def state(id: str, phase: str | None = "waiting", name: str = "pending") -> bytes:
    data = json.dumps({"state": name, "phase": phase, "version": 1})
    return f"id: {id}\nevent: state\ndata: {data}\n\n".encode()


PLACE = b'event: place\ndata: {"position": 1}\n\n'
RESULT = b'id: 9\nevent: result\ndata: {"result": 42}\n\n'

Answer = Sequence[bytes | None] | int


class Flaky:
    """Answers each request with the next of its answers: chunks of a stream, or a status."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[str | None] = []

    async def watched(self, pauses: Sequence[float] = (0, 0)) -> list[WatchEvent]:
        async with Client("http://x", transport=httpx.MockTransport(self._answer)) as client:
            return [event async for event in client.watch("q", "id", pauses=pauses)]

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request.headers.get("last-event-id"))
        answer = self.answers.pop(0)
        if answer == 0:
            raise httpx.ConnectError("refused")
        if isinstance(answer, int):
            code = {404: "unknown-job", 503: "unavailable"}.get(answer, "error")
            problem = {"type": f"urn:maitred:problem:{code}", "detail": "no", "status": answer}
            return httpx.Response(answer, json=problem if answer != 204 else None)
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Chunks(answer))


async def test_a_stream_that_breaks_is_taken_up_after_the_last_event() -> None:
    server = Flaky([state("1"), PLACE, None], [PLACE, state("2", "running")], 0, 503, [RESULT])
    events = await server.watched(pauses=(0, 0, 0))
    assert [event.id for event in events] == ["1", None, None, "2", "9"]
    assert server.asked == [None, "1", "2", "2", "2"]


async def test_an_event_that_breaks_off_in_the_middle_is_not_told() -> None:
    half = len(RESULT) // 2
    server = Flaky([state("1"), RESULT[:half], None], [RESULT[:half], RESULT[half:]])
    assert [event.id for event in await server.watched()] == ["1", "9"]


async def test_tries_are_bounded_and_news_counts_as_success() -> None:
    server = Flaky([state("1")], [PLACE], [PLACE], [state("2")])
    with pytest.raises(ServerUnreachable):
        await server.watched()
    assert server.asked == [None, "1", "1"], "a place is told on every connection, so it is no news"
    server = Flaky([state("1")], 0, [state("2")], 0, 503)
    with pytest.raises(StoreUnavailable):
        await server.watched()
    assert server.answers == []


async def test_a_connection_that_always_breaks_is_no_server() -> None:
    with pytest.raises(ServerUnreachable, match="broke off"):
        await Flaky([state("1"), None], [None], [None]).watched()


async def test_a_job_that_is_gone_when_the_stream_is_taken_up_is_unknown() -> None:
    with pytest.raises(UnknownJob):
        await Flaky([state("1"), None], 404).watched()


async def test_nothing_more_is_the_end() -> None:
    assert len(await Flaky([state("1"), None], 204).watched()) == 1


async def test_a_reset_is_told_and_what_nobody_knows_yet_is_not() -> None:
    stream = b": still here\n\nretry: 1000\n\nevent: sparkle\ndata: {}\n\nevent: reset\ndata: {}\n\n"
    reset, _ = await Flaky([stream, RESULT]).watched()
    assert isinstance(reset, ResetEvent)


async def test_what_is_no_stream_is_no_server_of_ours() -> None:
    def page(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, html="<p>hello</p>")

    async with Client("http://x", transport=httpx.MockTransport(page)) as client:
        with pytest.raises(ServerUnreachable, match="no Maitred server"):
            await anext(client.watch("q", "id"))


async def test_a_server_without_the_call_says_that_it_is_older() -> None:
    def older(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(404, json={"type": "urn:maitred:problem:no-such-route", "detail": "Not Found"})

    async with Client("http://x", transport=httpx.MockTransport(older)) as client:
        with pytest.raises(NotFound, match="older"):
            await anext(client.watch("q", "id"))


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
async def test_events_are_read_whatever_the_pieces_they_come_in(size: int) -> None:
    text = ": c\r\n\r\nid: 1\r\nevent: a\r\ndata: x\r\ndata: y\u2028\x85\r\n\r\nevent: b\ndata:z\n\n".encode()
    pieces = Chunks([text[at : at + size] for at in range(0, len(text), size)])
    assert [message async for message in messages(pieces)] == [
        Message("a", "x\ny\u2028\x85".encode(), "1"),
        Message("b", b"z", None),
    ]
