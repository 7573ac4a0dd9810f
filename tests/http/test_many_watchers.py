"""Many watchers at one server, and slow ones: each hears its event, and what they cost is bounded."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from maitred.core.output import Part
from maitred.core.settings import Settings
from maitred.http import sse
from maitred.service import everything, telling
from maitred.service.caller import HOUSE
from maitred.service.telling import Telling, Told
from maitred.store.port import Stores
from tests.conftest import Servers, connect
from tests.http.guest import body
from tests.http.house import House, open_house
from tests.http.test_watching_output import speaker
from tests.waiting import eventually


@contextlib.asynccontextmanager
async def connections(
    house: House, path: str, count: int
) -> AsyncIterator[list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]:
    """Open so many streams of events; nobody reads them by itself."""
    address = urlsplit(str(house.guest.http.base_url))
    opened = []
    request = f"GET {path} HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode()
    try:
        for _ in range(count):
            reader, writer = await asyncio.open_connection(address.hostname, address.port)
            opened.append((reader, writer))
            writer.write(request)
        yield opened
    finally:
        for _, writer in opened:
            writer.transport.abort()


async def hear(reader: asyncio.StreamReader, *words: bytes) -> None:
    """Read on until each of these was said in turn."""
    async with asyncio.timeout(50):
        for word in words:
            await reader.readuntil(word)


async def cost(servers: Servers, queue: str, count: int) -> Counter[str]:
    """Let so many watch a job, and as many everything; count what the store is asked for one event."""
    stores: Stores = connect(servers, "valkey", None)
    asked: Counter[str] = Counter()
    async with open_house(queue, stores) as house:
        id = (await house.guest.submits("k", "user:1"))["id"]
        async with (
            connections(house, f"{house.guest.url}/jobs/{id}/events", count) as jobs,
            connections(house, f"/api/v1/events?queue={queue}", count) as all_queues,
        ):
            await asyncio.gather(*(hear(reader, b"event: place") for reader, _ in jobs))
            await asyncio.gather(*(hear(reader, b"event: queue") for reader, _ in all_queues))
            stores.on_call(lambda verb, _took, _trouble: asked.update([verb]))
            await house.store.cancel(id, "enough")
            both = (*jobs, *all_queues)
            await asyncio.gather(*(hear(reader, b"event: result", b"enough") for reader, _ in both))
        await eventually(lambda: _nobody(house))
    await stores.close()
    return asked


async def _nobody(house: House) -> bool:
    watchers = house.foresights.watchers(house.store.queue)
    return not len(house.foresights.everything) and not len(watchers or ())


READS = ("read", "records", "output", "status", "batch")


@pytest.mark.parametrize("count", [100, pytest.param(500, marks=pytest.mark.soak)])
async def test_each_of_many_watchers_hears_its_event_and_the_store_is_asked_no_more_for_them(
    servers: Servers, queue_name: str, count: int
) -> None:
    few = await cost(servers, f"{queue_name}-few", 1)
    many = await cost(servers, queue_name, count)
    assert sum(many[verb] for verb in READS) <= sum(few[verb] for verb in READS) + 2


async def test_a_reader_that_takes_nothing_is_given_up(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "STALLED", 0.1)
    monkeypatch.setattr(sse, "HEARTBEAT", 0.01)
    await house.store.configure(Settings(output_limit=64 << 20, lease=1 << 40))
    job = await speaker(house)
    async with connections(house, f"{house.guest.url}/jobs/{job.id}/events", 1) as [(reader, writer)]:
        await hear(reader, b"event: state")
        writer.transport.pause_reading()  # type: ignore[attr-defined]

        async def gone() -> bool:
            await job.says(Part("stdout", b"x" * 200_000))
            return await _nobody(house)

        await eventually(gone)


async def test_a_slow_watcher_of_a_job_is_cut_off_and_hears_the_rest_when_it_comes_back(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telling, "MOST_UNREAD", 10_000)
    job = await speaker(house)
    watchers = house.foresights.watchers(house.store.queue)
    assert watchers is not None
    watch = await watchers.open(job.id)
    assert watch

    async def cut_off() -> bool:
        await job.says(Part("stdout", b"%d" % job.told))
        return watch.closed

    await eventually(cut_off)
    assert watch.unread < 12_000
    heard = await told_by(watch)
    again = await watchers.open(job.id, last=heard[-1].id)
    assert again
    heard += await told_by(again)
    texts = [int(told.data["text"]) for told in heard if told.event == "output"]
    assert texts == list(range(job.told))
    again.leave()


async def told_by(watch: Telling) -> list[Told]:
    """Fetch all that waits."""
    found = []
    while told := await watch.next(0.2):
        found.append(told)
    return found


async def test_a_slow_watcher_of_everything_is_told_no_more_than_it_can_take_and_misses_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(everything, "FULL", 20_000)
    slow = house.foresights.everything.open(HOUSE)
    assert [told.event for told in await told_by(slow)] == ["queue"]
    answer = await house.guest.http.post(
        f"{house.guest.url}/jobs/many", json=[body(f"k{n}", "user:1") for n in range(100)]
    )
    ids = [item["id"] for item in answer.json()["items"]]

    async def is_full() -> bool:
        return slow.held_back

    await eventually(is_full)
    await asyncio.sleep(0.2)
    assert slow.unread < 22_000
    heard: list[str] = []
    while len(heard) < len(ids):
        told = await slow.next(10)
        assert told
        assert told.event == "state"
        heard.append(told.data["id"])
    assert sorted(heard) == sorted(ids)
    assert slow.unread == 0
    slow.leave()
