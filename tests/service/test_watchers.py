"""What happens while a watcher's job or batch is read is told afterwards: nothing is lost between the two."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from maitred.core.batch import Batch, BatchOrder
from maitred.core.job import Submitter
from maitred.core.output import Output, Part, Saying
from maitred.service.batch_watch import BatchWatchers
from maitred.service.telling import Telling, Told
from maitred.service.watch import Watch
from maitred.service.watchers import Watchers
from maitred.store.port import Store
from tests.service.lookout import Lookout

pytestmark = pytest.mark.parametrize("kind", ["memory"], indirect=True)

ADA = Submitter("user", "ada")


class Slow:
    """A store whose answers about a job's output and a batch can be kept back after they were read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.asked = asyncio.Event()
        self._may_answer = asyncio.Event()
        self._may_answer.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @contextlib.contextmanager
    def keeping_back(self) -> Iterator[None]:
        """Let answers wait until the end of the block."""
        self.asked.clear()
        self._may_answer.clear()
        try:
            yield
        finally:
            self._may_answer.set()

    async def output(self, id: str, version: int | None, after: int, limit: int) -> Output | None:
        answer = await self._store.output(id, version, after, limit)
        await self._pause()
        return answer

    async def batch(self, id: str) -> Batch | None:
        answer = await self._store.batch(id)
        await self._pause()
        return answer

    async def _pause(self) -> None:
        self.asked.set()
        await self._may_answer.wait()


@contextlib.asynccontextmanager
async def at_work(watchers: Watchers | BatchWatchers) -> AsyncIterator[None]:
    task = asyncio.create_task(watchers.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def rest(watch: Telling) -> list[Told]:
    """Give all that is told up to the end."""
    told = []
    async with asyncio.timeout(20):
        while not watch.ended:
            if event := await watch.next(1):
                told.append(event)
    return told


@contextlib.asynccontextmanager
async def watched(lookout: Lookout, slow: Slow) -> AsyncIterator[tuple[str, Watch, Watchers]]:
    """Watch a job that runs."""
    watchers = Watchers(slow, lookout.foresight)
    await lookout.works(1)
    id = await lookout.submit("mine")
    await lookout.starts()
    async with at_work(watchers):
        watch = await watchers.open(id)
        assert watch
        yield id, watch, watchers


async def test_an_end_that_comes_while_output_is_read_is_told_with_the_result(lookout: Lookout) -> None:
    slow = Slow(lookout.store)
    async with watched(lookout, slow) as (id, watch, _):
        with slow.keeping_back():
            saying = Saying(lookout.held[id].lease, (Part("stdout", b"one"),), 0)
            await lookout.store.say("w", [saying])
            await asyncio.wait_for(slow.asked.wait(), 20)
            await lookout.ends(id)
            await lookout.heard()
        told = await rest(watch)
    assert [event.event for event in told] == ["state", "output", "state", "result"]
    assert told[-2].data["state"] == "completed"


async def test_an_end_that_comes_while_all_are_told_anew_is_told_too(lookout: Lookout) -> None:
    slow = Slow(lookout.store)
    async with watched(lookout, slow) as (id, watch, watchers):
        with slow.keeping_back():
            watchers.missed()
            await asyncio.wait_for(slow.asked.wait(), 20)
            await lookout.ends(id)
            await lookout.heard()
        told = await rest(watch)
    assert [event.event for event in told] == ["state", "reset", "state", "state", "result"]


async def test_a_change_that_comes_while_a_batch_is_read_is_told_too(lookout: Lookout) -> None:
    slow = Slow(lookout.store)
    watchers = BatchWatchers(slow, lookout.foresight)
    batch = (await lookout.store.create_batch(BatchOrder("", ADA, "", b"{}", False, False))).id
    async with at_work(watchers):
        watch = await watchers.open(batch)
        assert watch
        with slow.keeping_back():
            await asyncio.wait_for(slow.asked.wait(), 20)
            await lookout.store.remove_batch(batch)
            await lookout.heard()
        told = await rest(watch)
    assert [event.data["state"] for event in told] == ["pending", "deleted"]
