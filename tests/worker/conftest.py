"""A queue on the real clock with a worker beside the test."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from maitred.core.job import Job, Order, Phase, Submitter, View
from maitred.core.settings import Settings
from maitred.service.handlers import Handlers
from maitred.service.host import Host
from maitred.store.port import Store
from maitred.wire import encode_body, encode_json, parse_body
from maitred.worker import Worker
from tests.waiting import eventually
from tests.working import at_work, changed

U1 = Submitter("user", "1")


async def found(look: Callable[[], Awaitable[Job | None]]) -> Job:
    """Wait for a job to be as wanted."""
    job = await eventually(look)
    assert job is not None
    return job


class Kitchen:
    """A queue, its handlers, and what became of the jobs."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.handlers = Handlers()
        self.settings = Settings()
        self.host: Host | None = None

    async def set(self, **changes: Any) -> None:
        """Change the queue's settings; durations in seconds."""
        self.settings = changed(self.settings, changes)
        await self.store.configure(self.settings)

    @asynccontextmanager
    async def worker(self, slots: int = 2) -> AsyncIterator[Worker]:
        """Run a worker for the time of the block, and stop it in order afterwards."""
        worker = Worker(self.store, self.handlers, slots, host=self.host)
        async with at_work(worker):
            yield worker

    async def call(self, handler: str, id: str = "job", who: Submitter = U1, **args: Any) -> None:
        """Submit a job for a handler."""
        body = encode_json({"key": id, "run": {"handler": handler, "args": args}})
        await self.store.put([Order(id, who, f"handler:{handler}", body)])

    async def stage(self, id: str = "job") -> None:
        """Submit a job for the stages of the queue."""
        body = encode_json({"key": id, "run": {"args": {}}})
        await self.store.put([Order(id, U1, self.settings.need(1), body)])

    async def command(self, *argv: str, id: str = "job", files: dict[str, Any] | None = None) -> None:
        """Submit a command."""
        body = encode_json({"key": id, "run": {"command": argv, "files": files or {}}})
        await self.store.put([Order(id, U1, "command", body)])

    async def script(self, *steps: dict[str, Any], id: str = "job", **more: Any) -> None:
        """Submit a script, checked as the server does it."""
        body = parse_body(
            {"key": id, "submitter": {"type": "user", "id": "1"}, "run": {"script": [*steps], **more}}
        )
        await self.store.put([Order(id, U1, "command", encode_body(body, "local"))])

    async def view(self, id: str = "job") -> View:
        [view] = await self.store.read([id])
        assert view is not None
        return view

    async def until(self, phase: Phase, id: str = "job") -> Job:
        """Wait until the job is in this phase."""

        async def look() -> Job | None:
            job = (await self.view(id)).job
            return job if job.phase is phase else None

        return await found(look)

    async def ended(self, id: str = "job") -> Job:
        """Wait until the job has ended."""
        return await self.until(Phase.ENDED, id)


@pytest.fixture
def clock() -> None:
    """Override: the stores are on their own clock."""


@pytest.fixture
def kitchen(store: Store) -> Kitchen:
    return Kitchen(store)
