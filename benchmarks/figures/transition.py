"""A transition in ZooKeeper: how fast the ledger moves jobs to their next stage, beside the bare request.

One server of ZooKeeper, one session each, a number of requests under way at once on both sides. The ledger's
side ends a stage of a job in a batch: status, place and index entry move together, checked by version. The
bare side commits the same operations, with data of the same size, on nodes of its own, by the client library
alone. Both go in turns, so that a slow moment of the machine falls on both alike.
"""

import asyncio
import itertools
import secrets
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from benchmarks.errors import BenchmarkError
from benchmarks.figures.figure import Figure, Reading
from benchmarks.scale import Scale
from benchmarks.stand import Stands
from benchmarks.systems.system import System
from maitred.core.batch import BatchOrder
from maitred.core.job import Submitter
from maitred.core.stages import INGEST
from maitred.store.zookeeper.ledger import Ledger
from maitred.store.zookeeper.records import JobEntry
from maitred.store.zookeeper.session import Session
from tests.ports import free_ports
from tests.zookeeper.party import newcomer
from tests.zookeeper.server import ZooKeeper

_AT_ONCE = 16
_TURN = 240
_TURNS = 9
# ZooKeeper's own program runs faster when it has run for a while.
_WARM = 3
_WHO = Submitter("user", "bench")


class Transition(Figure):
    name = "transition"
    every_round = False

    def applies_to(self, system: System) -> bool:
        return system.has_probe and system.figures is None

    def measure(self, system: System, stands: Stands, scale: Scale) -> Reading:
        del system, stands, scale
        with tempfile.TemporaryDirectory(prefix="maitred-bench-") as home:
            server = ZooKeeper(Path(home) / "zookeeper", free_ports(1)[0])
            try:
                server.start()
                server.await_ready()
                return asyncio.run(_race(server.host))
            except OSError as error:
                raise BenchmarkError(f"ZooKeeper did not start: {error}") from error
            finally:
                server.stop()

    def words(self, reading: Reading) -> str:
        return f"{reading['ledger_per_s']:.0f} per second, bare {reading['bare_per_s']:.0f}"


async def _race(host: str) -> Reading:
    ledger = Ledger(Session(host), "/bench")
    await ledger.open()
    client = KazooClient(host)
    await asyncio.to_thread(client.start)
    taken: dict[str, list[float]] = {"ledger_per_s": [], "bare_per_s": []}
    try:
        bid = (await ledger.batches.create(BatchOrder("", _WHO, "", b"{}", expanding=False, sealed=False))).id
        bare = Bare(client)
        for turn in range(_WARM + _TURNS):
            jobs = await _running(ledger, bid)
            await bare.prepare(jobs[0][0])
            moves: dict[str, Sequence[Callable[[], Awaitable[Any]]]] = {
                "ledger_per_s": [_advance(ledger, *job) for job in jobs],
                "bare_per_s": [bare.commit(number) for number in range(_TURN)],
            }
            for name in sorted(moves, reverse=turn % 2 == 0):
                rate = await _timed(moves[name])
                if turn >= _WARM:
                    taken[name].append(rate)
    finally:
        await ledger.close()
        await asyncio.to_thread(client.stop)
    return {name: statistics.median(rates) for name, rates in taken.items()}


_numbers = itertools.count()


async def _running(ledger: Ledger, bid: str) -> list[tuple[JobEntry, bytes]]:
    """Give jobs of a batch that run in their first stage."""
    added = await ledger.intake.add(bid, [newcomer(f"job {next(_numbers)}", bid=bid) for _ in range(_TURN)])
    running = []
    for each in added:
        run = secrets.token_bytes(16)
        entry = await ledger.jobs.read(each.jid)
        running.append((await ledger.jobs.start(entry, run, 1), run))
    return running


def _advance(ledger: Ledger, entry: JobEntry, run: bytes) -> Callable[[], Awaitable[JobEntry]]:
    return lambda: ledger.jobs.advance(entry.jid, run, b'{"bytes":1024}', seen=entry)


async def _timed(moves: Sequence[Callable[[], Awaitable[Any]]]) -> float:
    """Make moves, some at once; give how many were made in a second."""
    waiting = list(reversed(moves))

    async def work() -> None:
        while waiting:
            await waiting.pop()()

    begun = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))
    return len(moves) / (time.perf_counter() - begun)


class Bare:
    """The same operations without the ledger, on a tree of their own."""

    def __init__(self, client: KazooClient) -> None:
        self._client = client
        self._turn = 0
        self._status = self._place = b""

    async def prepare(self, like: JobEntry) -> None:
        """Make the nodes that a turn moves, with data as large as what the ledger writes."""
        self._turn += 1
        root = f"/bench/jobs/{like.jid}"
        for name in ("status", "place"):
            data, _ = await asyncio.to_thread(self._client.get, f"{root}/{name}")
            setattr(self, f"_{name}", data)
        await asyncio.to_thread(self._fill)

    def _fill(self) -> None:
        for stage in INGEST[:2]:
            self._client.ensure_path(f"/bare/{self._turn}/{stage}")
        for number in range(_TURN):
            base = f"/bare/{self._turn}/job{number}"
            self._client.ensure_path(base)
            self._client.create(f"{base}/status", self._status)
            self._client.create(f"{base}/place", self._place)
            self._client.create(f"/bare/{self._turn}/{INGEST[0]}/05-job{number}")

    def commit(self, number: int) -> Callable[[], Awaitable[None]]:
        """Give a move of one job to the next stage."""
        return lambda: self._commit(number)

    async def _commit(self, number: int) -> None:
        base, index = f"/bare/{self._turn}/job{number}", f"/bare/{self._turn}"
        request = self._client.transaction()
        request.set_data(f"{base}/status", self._status, 0)
        request.set_data(f"{base}/place", self._place, 0)
        request.delete(f"{index}/{INGEST[0]}/05-job{number}")
        request.create(f"{index}/{INGEST[1]}/05-job{number}")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        request.commit_async().rawlink(lambda _: loop.call_soon_threadsafe(done.set_result, None))
        await done
