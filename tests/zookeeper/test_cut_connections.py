"""Connections that are cut anywhere, in a request or its answer: every step takes place once."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from random import Random

import pytest

from maitred.core.stages import INGEST
from maitred.store.zookeeper.check import check
from maitred.store.zookeeper.ledger import Ledger
from maitred.store.zookeeper.session import Session
from tests.closing import closing
from tests.zookeeper.party import batch_order, newcomer
from tests.zookeeper.server import ZooKeeper

JOBS = 12


class Cutter:
    """Stands between a session and the server, and cuts each connection after so many bytes, by dice."""

    def __init__(self, port: int, dice: Random) -> None:
        self.port, self.dice, self.cuts, self.cutting = port, dice, 0, True
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._meet, "127.0.0.1", 0)
        try:
            yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            await server.wait_closed()
            for _ in range(3):  # whoever was let in at the last moment is met in the next turns of the loop
                await asyncio.sleep(0)
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await asyncio.sleep(0)

    def _meet(self, caller: asyncio.StreamReader, to_caller: asyncio.StreamWriter) -> None:
        """Take in a connection at once: a task that had not begun could be cancelled without tidying up."""
        task = asyncio.ensure_future(self._pass_on(caller, to_caller))
        self._tasks.add(task)

        def over(done: "asyncio.Task[None]") -> None:
            self._tasks.discard(done)
            to_caller.transport.abort()

        task.add_done_callback(over)

    async def _pass_on(self, caller: asyncio.StreamReader, to_caller: asyncio.StreamWriter) -> None:
        writers, ways = [to_caller], []
        try:
            server, to_server = await asyncio.open_connection("127.0.0.1", self.port)
            writers.append(to_server)
            self._left = self.dice.randrange(300, 50_000)
            ways = [
                asyncio.ensure_future(self._pump(caller, to_server)),
                asyncio.ensure_future(self._pump(server, to_caller)),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            # Before anything is awaited: a second cancel may come there.
            for writer in writers:
                writer.transport.abort()
            await asyncio.gather(*ways, return_exceptions=True)
            await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                if self.cutting and len(data) >= self._left:
                    writer.write(data[: self._left])
                    await writer.drain()  # what was still before the cut arrives
                    self.cuts += 1
                    return
                self._left -= len(data)
                writer.write(data)
                await writer.drain()


@pytest.mark.parametrize("seed", range(4))
async def test_every_step_takes_place_once_over_connections_that_are_cut(
    zookeeper: ZooKeeper, root: str, layout: str, seed: int
) -> None:
    cutter = Cutter(zookeeper.port, Random(seed))
    async with (
        cutter.open() as host,
        closing(Ledger(Session(host, timeout=20, patience=40), root, layout=layout)) as ledger,  # type: ignore[arg-type]
    ):
        await ledger.open()
        put = await ledger.batches.create(batch_order("once", sealed=False))
        assert put.created
        added = await ledger.intake.add(put.id, [newcomer(f"k{n}") for n in range(JOBS)])
        assert [each.created for each in added] == [True] * JOBS
        await ledger.batches.seal(put.id)
        lock = await ledger.batches.lock(put.id, "me", b"l" * 16)
        assert lock
        for each in added:
            run = each.jid.encode()
            job = await ledger.jobs.read(each.jid)
            version = job.version
            for stage in INGEST:
                job = await ledger.jobs.start(job, run, 1)
                assert job.state == stage
                job = await ledger.jobs.advance(each.jid, run, b"{}", seen=job)
            assert (job.state, job.version) == ("completed", version + 2 * len(INGEST))
        assert await ledger.locks.holds(lock)
        assert await ledger.batches.begin_report(put.id, lock)
        await ledger.batches.store_report(put.id, lock, b'{"sequence":1,"failed":[]}', send=True)
        assert (await ledger.batches.read(put.id)).batch.sequence == 1
        assert cutter.cuts > 3
        cutter.cutting = False
        assert await check(ledger) == []
