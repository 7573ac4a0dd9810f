"""Asking again: what is safe is asked again when there was no answer, and nothing else is."""

from collections.abc import AsyncIterator
from typing import Literal

import httpx
import pytest

from maitred.client import Client
from maitred.core.settings import Settings
from maitred.errors import QueueFull, ServerUnreachable, StoreUnavailable, TooOften, UnknownJob
from maitred.http import create_app
from maitred.http.answer import problem_of
from maitred.service.desk import Desk
from maitred.store.memory import MemoryStores
from tests.http.guest import HOST, body

Trouble = Literal["refused", "lost", "unavailable", "too-often"]


class Line(httpx.AsyncBaseTransport):
    """The way to a real app, with trouble on it: refused before it is heard, or lost after it was done."""

    def __init__(self, app: httpx.AsyncBaseTransport) -> None:
        self._app = app
        self.troubles: list[Trouble] = []
        self.calls: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.calls.append(request.method)
        trouble = self.troubles.pop(0) if self.troubles else None
        if trouble == "refused":
            raise httpx.ConnectError("refused")
        if trouble in ("unavailable", "too-often"):
            refusal = problem_of(StoreUnavailable() if trouble == "unavailable" else TooOften(0))
            return httpx.Response(refusal["status"], json=refusal)
        answer = await self._app.handle_async_request(request)
        if trouble == "lost":
            await answer.aread()
            raise httpx.ReadError("lost")
        return answer


@pytest.fixture
async def line() -> Line:
    stores = MemoryStores()
    await stores.queue("q").configure(Settings(max_total=2))
    return Line(httpx.ASGITransport(create_app(Desk(stores), hosts=[HOST])))


@pytest.fixture
async def client(line: Line) -> AsyncIterator[Client]:
    async with Client(f"http://{HOST}", transport=line, retries=(0, 0, 0)) as client:
        yield client


async def test_what_was_never_heard_is_asked_again_whatever_it_is(line: Line, client: Client) -> None:
    line.troubles = ["refused", "too-often"]
    job = await client.put("q", body())
    line.troubles = ["refused", "too-often", "refused"]
    assert (await client.cancel("q", job.id)).code == "cancelled"
    assert line.calls == ["PUT"] * 3 + ["POST"] * 4


async def test_what_may_have_been_done_is_asked_again_if_that_does_no_harm(
    line: Line, client: Client
) -> None:
    line.troubles = ["lost"]
    job = await client.put("q", body())
    assert job.outcome == "updated", "the first call was heard"
    line.troubles = ["unavailable", "lost"]
    assert (await client.job("q", job.id)).key == "k"
    line.troubles = ["lost"]
    [again] = await client.put_many("q", [body()])
    assert getattr(again, "outcome", None) == "updated"
    line.troubles = ["lost"]
    await client.remove("q", job.id)
    with pytest.raises(UnknownJob):
        await client.remove("q", job.id)


@pytest.mark.parametrize("trouble", ["lost", "unavailable"])
async def test_what_may_have_been_done_and_would_do_harm_is_not_asked_again(
    line: Line, client: Client, trouble: Trouble
) -> None:
    job = await client.put("q", body())
    line.calls, line.troubles = [], [trouble]
    with pytest.raises((ServerUnreachable, StoreUnavailable)):
        await client.release("q", job.id)
    assert line.calls == ["POST"]


async def test_a_refusal_that_stays_one_is_not_asked_again(line: Line, client: Client) -> None:
    await client.put_many("q", [body("a"), body("b")])
    line.calls = []
    with pytest.raises(QueueFull):
        await client.put("q", body("c"))
    assert line.calls == ["PUT"]


async def test_it_is_asked_a_bounded_number_of_times(line: Line, client: Client) -> None:
    line.troubles = ["refused"] * 10
    with pytest.raises(ServerUnreachable):
        await client.queues()
    assert line.calls == ["GET"] * 4
    line.troubles = ["unavailable"]
    async with Client(f"http://{HOST}", transport=line, retries=()) as hasty:
        with pytest.raises(StoreUnavailable):
            await hasty.queues()
