"""A rehearsal: one queue with its real rules, worker and handlers, in memory, on a clock that tests set.

Between the calls nobody works: what was submitted waits, and can be looked at and moved. `run_due` lets a
worker in until nothing more can start at this time; `run_until_idle` also moves the clock, from one moment
that matters to the next, until nothing is left that time alone would change.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import httpx

from maitred.client import Client
from maitred.config import QueueConfig
from maitred.core.settings import MINUTE, Settings
from maitred.errors import MaitredError
from maitred.service.clerk import Clerk
from maitred.service.courier import Courier
from maitred.service.delivery import Postman
from maitred.service.desk import Desk
from maitred.service.keyring import LOCAL, Keys
from maitred.service.queue import Queue
from maitred.service.receivers import Receivers
from maitred.service.signing import Signer
from maitred.store.memory import MemoryStore, MemoryStores
from maitred.testing.asserting import must_be_completed, must_be_failed, must_be_waiting
from maitred.testing.callbacks import Callback, Mailbox
from maitred.testing.clock import Clock
from maitred.wire import JobBody, JobDocument
from maitred.worker import Worker

if TYPE_CHECKING:
    from maitred.testing.sync import SyncRehearsal

YEAR = 365 * 24 * 60 * MINUTE
# No lease ends while a clock jumps from one moment to the next: what would be longer is nobody's wait.
LEASE, HORIZON = 100 * YEAR, 50 * YEAR
MOST_MOMENTS = 10_000
HOST = "maitred.test"


class Rehearsal:
    """One queue under test. It takes the queue's place until `close`: programs that use it ask this store.

    `settings` are those of a table `[queues.NAME]`, as `time_limit="1m"`; a mistake is pydantic's
    `ValidationError`. With one slot, which is the default, jobs run one after the other in the order of the
    line; with more they run beside each other as on a worker. Callbacks are kept in `callbacks`, and go to
    the `receiver` if there is one, such as `httpx.ASGITransport(app)`: no message leaves the process.

    The methods are coroutines of one loop; `rehearsal.sync` has them for tests without one.
    """

    def __init__(
        self,
        queue: Queue,
        *,
        slots: int = 1,
        clock: Clock | None = None,
        receiver: httpx.AsyncBaseTransport | None = None,
        **settings: Any,
    ) -> None:
        self.queue, self.clock = queue, clock or Clock()
        self._slots, self._shifts = slots, 0
        self._settings = _settings(settings)
        self._stores = MemoryStores(clock=self.clock)
        self._store: MemoryStore = self._stores.queue(queue.name)
        self._mailbox = Mailbox(receiver)
        postman = Postman(Signer(Keys(self._stores.keyring)), transport=self._mailbox)
        self._clerk = Clerk(self._store, "rehearsal", postman)
        self._courier = Courier(self._store, "rehearsal", postman, Receivers())
        self._desk = Desk(self._stores)
        self._store.open(self._settings)
        self._asked = queue.where
        queue.ask(self._stores)

    # ---------------------------------------------------------------- submitting and looking

    async def submit(self, body: JobBody | Mapping[str, Any]) -> JobDocument:
        """Submit a job, a body as HTTP has it; give its document.

        Raises what a server would answer: `InvalidJob` with all faults, `QueueFull`, `OtherSubmitter`, …
        """
        return JobDocument.model_validate(await self._desk.put(self.queue.name, body))

    async def submit_many(
        self, bodies: Sequence[JobBody | Mapping[str, Any]]
    ) -> list[JobDocument | MaitredError]:
        """Submit jobs in turn; give each one's document or error, in order."""
        return [
            answer if isinstance(answer, MaitredError) else JobDocument.model_validate(answer)
            for answer in await self._desk.put_many(self.queue.name, bodies)
        ]

    async def job(self, id: str) -> JobDocument:
        """Give a job's document; `UnknownJob` if there is none."""
        return await self.queue.job(id)

    async def completed(self, id: str) -> Any:
        """Assert that a job has completed; give its result."""
        return must_be_completed(await self.job(id))

    async def failed(self, id: str, code: str | None = None) -> JobDocument:
        """Assert that a job has failed, with this code if one is named; give its document."""
        return must_be_failed(await self.job(id), code)

    async def waiting(self, id: str, code: str | None = None) -> JobDocument:
        """Assert that a job waits, for this reason if one is named; give its document."""
        return must_be_waiting(await self.job(id), code)

    @property
    def callbacks(self) -> list[Callback]:
        """What was sent to response addresses, in order."""
        return self._mailbox.callbacks

    async def secret(self) -> str:
        """Give what callbacks are signed with, as `maitred keys secret` shows it."""
        return (await Keys(self._stores.keyring).signing(LOCAL))[0]

    def transport(self) -> httpx.ASGITransport:
        """Give a server over this queue, for clients that call it without a network."""
        from maitred.http import create_app  # noqa: PLC0415 - few tests need a server, and all would wait for it

        return httpx.ASGITransport(create_app(self._desk, hosts=[HOST]))

    def client(self) -> Client:
        """Give a client of that server, for programs that reach the queue over HTTP."""
        return Client(f"http://{HOST}", transport=self.transport())

    # ---------------------------------------------------------------- running

    async def run_due(self) -> None:
        """Run all that can start now, and what follows from that; the clock stands still."""
        async with self._worker() as worker:
            await self._work_off(worker)

    async def run_until_idle(self) -> None:
        """Run everything: the clock goes on to each delay, back-off and expiry until none is left.

        What waits then waits for somebody: a hold, a pause, or a handler that the queue does not have. Raises
        `AssertionError` if it has no end, as with a job that submits itself again.
        """
        async with self._worker() as worker:
            for _ in range(MOST_MOMENTS):
                await self._work_off(worker)
                moment = await self._next_moment()
                if moment is None:
                    return
                self.clock.reach(moment)
        raise AssertionError(f"it is not idle after {MOST_MOMENTS} moments; it is {self.clock.now} by now")

    @asynccontextmanager
    async def _worker(self) -> AsyncIterator["asyncio.Task[None]"]:
        """Let a worker in, and out again in order."""
        self._shifts += 1
        worker = Worker(self._store, self.queue.handlers, self._slots, name=f"rehearsal-{self._shifts}")
        task = asyncio.create_task(worker.run())
        try:
            while not (await self._store.status()).workers:
                await self._change(task)
            yield task
        finally:
            worker.stop()
            await task

    async def _work_off(self, worker: "asyncio.Task[None]") -> None:
        """Wait until nothing runs, and nothing more can be started, reported or told at this time."""
        while True:
            moment = await self._store.tick()
            if await self._store.running():
                await self._change(worker)
                continue
            more_to_do = moment.next_at == moment.now
            if not (more_to_do or await self._clerk.work_off() or await self._courier.work_off()):
                return

    async def _change(self, worker: "asyncio.Task[None]") -> None:
        """Wait until something may have changed; a worker that cannot work raises why."""
        self._store.touched.clear()
        touched = asyncio.create_task(self._store.touched.wait())
        await asyncio.wait([touched, worker], return_when=asyncio.FIRST_COMPLETED)
        touched.cancel()
        if worker.done():
            worker.result()

    async def _next_moment(self) -> int | None:
        """Give when time alone changes something: for the queue, its callbacks, or its reports."""
        kept = await self._store.snapshot()
        moments = [*kept.notices_due.values()]
        moments += [batch.try_at for batch in kept.batches.values() if batch.unsent]
        if (moment := await self._store.tick()).next_at is not None:
            moments.append(moment.next_at)
        first = min(moments, default=None)
        return None if first is None or first > self.clock() + HORIZON else first

    # ---------------------------------------------------------------- the end

    def close(self) -> None:
        """Give the queue its own store back."""
        self.queue.ask(self._asked)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def sync(self) -> "SyncRehearsal":
        """The same methods for tests without a loop; they block until the answer is there."""
        from maitred.testing.sync import SyncRehearsal  # noqa: PLC0415 - it is made of this class's methods

        return SyncRehearsal(lambda: self)


def _settings(given: Mapping[str, Any]) -> Settings:
    return replace(QueueConfig.model_validate(given).settings(private=True), lease=LEASE)
