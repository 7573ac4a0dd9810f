"""What `maitred bench` does: a bounded number of jobs as one batch, measured from outside, and deleted.

How fast jobs are taken is measured here. When they were created, started and ended is what their timelines
say, by the store's clock.
"""

import asyncio
import contextlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import maitred
from maitred.cli.calling import Where
from maitred.cli.printing import print_pairs
from maitred.cli.spans import span
from maitred.client import Client
from maitred.errors import ConfigError, Conflict, NotFound
from maitred.wire import JobDocument

ENDS = ("completed", "failed")


@contextlib.contextmanager
def private_house(slots: int) -> Iterator[Where]:
    """Open a house of our own for a while, whose workers have a handler that does nothing."""
    words = ("up", "--port", "0", "--slots", str(slots), "--app", "maitred.cli.idle", "--json")
    with tempfile.TemporaryDirectory(prefix="maitred-bench-") as home:
        log = Path(home, "log")
        with (
            log.open("wb") as errors,
            subprocess.Popen(
                [sys.executable, "-m", "maitred", *words],
                cwd=home,
                env=_environment(),
                stdout=subprocess.PIPE,
                stderr=errors,
                # A Ctrl-C is for us; we end it then.
                start_new_session=True,
            ) as up,
        ):
            try:
                line = up.stdout.readline() if up.stdout else b""
                if not line:
                    raise ConfigError(f"The private house did not open: {log.read_text('utf-8').strip()}")
                yield Where(server=json.loads(line)["ready"])
            finally:
                up.terminate()


def _environment() -> dict[str, str]:
    """Give our own environment, without our own settings, in which this very program is found."""
    others = {name: text for name, text in os.environ.items() if not name.startswith("MAITRED_")}
    paths = [str(Path(maitred.__file__).parents[1]), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return others | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


class Bench:
    """One measurement: so many jobs, submitted by so many at the same time, ended within so many seconds.

    In a queue of our `own` nothing starts before all are submitted, so that each is measured by itself, and
    nothing is deleted: the queue itself goes.
    """

    def __init__(
        self,
        queue: str,
        jobs: int,
        clients: int,
        submitter: Mapping[str, str],
        within: float,
        *,
        own: bool = False,
    ) -> None:
        self._queue, self._jobs, self._clients = queue, jobs, clients
        self._within, self._own = within, own
        self._submitter = dict(submitter)

    async def run(self, client: Client, run: Mapping[str, Any]) -> dict[str, Any]:
        """Measure, and delete what was made for it, however it ends."""
        async with self._batch(client) as batch:
            try:
                async with asyncio.timeout(self._within):
                    if self._own:
                        await client.pause(self._queue, "all jobs are submitted first")
                    took, calls = await self._submit(client, batch, run)
                    await client.seal_batch(self._queue, batch)
                    if self._own:
                        await client.resume(self._queue)
                    await client.wait_batch(self._queue, batch)
            except TimeoutError:
                return {"jobs": self._jobs, "completed": 0, "gave_up_after": self._within}
            return self._figures(took, calls, await self._jobs_of(client, batch))

    @contextlib.asynccontextmanager
    async def _batch(self, client: Client) -> AsyncIterator[str]:
        asked = {"external_id": f"bench-{secrets.token_hex(6)}", "submitter": self._submitter, "seal": False}
        batch = (await client.submit_batch(self._queue, asked)).id
        try:
            yield batch
        finally:
            if not self._own:
                await self._clean_up(client, batch)

    async def _submit(self, client: Client, batch: str, run: Mapping[str, Any]) -> tuple[float, list[float]]:
        """Submit all jobs; give the time that it took, and that of each call."""
        calls: list[float] = []
        body = {"submitter": self._submitter, "batch": batch, "run": run}

        async def submit(key: str) -> None:
            began = time.perf_counter()
            await client.put(self._queue, {**body, "key": key})
            calls.append(time.perf_counter() - began)

        began = time.perf_counter()
        await self._at_once((f"{batch}/bench-{number}" for number in range(self._jobs)), submit)
        return time.perf_counter() - began, calls

    async def _at_once(self, names: Iterator[str], act: Callable[[str], Awaitable[None]]) -> None:
        """Do something for each, so many at the same time."""

        async def acting() -> None:
            for name in names:
                await act(name)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._clients):
                    group.create_task(acting())
        except BaseExceptionGroup as errors:
            # They were all refused for one reason, which is told once.
            raise errors.exceptions[0] from None

    async def _jobs_of(self, client: Client, batch: str) -> list[JobDocument]:
        each = client.each_job(self._queue, batch=batch)
        return [job async for job in each if isinstance(job, JobDocument)]

    async def _clean_up(self, client: Client, batch: str) -> None:
        """Delete the batch, and before it the jobs that have not ended; once it is sealed no more come."""

        async def remove(id: str) -> None:
            # It is gone already, or it has ended meanwhile.
            with contextlib.suppress(NotFound, Conflict):
                await client.remove(self._queue, id)

        if (await client.batch(self._queue, batch)).state not in ENDS:
            with contextlib.suppress(Conflict):
                await client.seal_batch(self._queue, batch)
            unended = [job.id for job in await self._jobs_of(client, batch) if job.state not in ENDS]
            await self._at_once(iter(unended), remove)
            await client.wait_batch(self._queue, batch)
        await client.remove_batch(self._queue, batch)

    def _figures(self, took: float, calls: list[float], jobs: Sequence[JobDocument]) -> dict[str, Any]:
        starts = [job.timeline[0].start for job in jobs if job.timeline]
        ends = [end for job in jobs if job.timeline and (end := job.timeline[-1].end)]
        waits = [(job.timeline[0].start - job.created_at).total_seconds() for job in jobs if job.timeline]
        drained = (max(ends) - min(starts)).total_seconds() if ends else 0.0
        return {
            "jobs": self._jobs,
            "completed": sum(job.state == "completed" for job in jobs),
            "submit": {"per_second": self._jobs / took, **_percentiles(calls)},
            "drain": {"per_second": len(ends) / drained if drained else None},
            "wait": _percentiles(waits),
        }


def _percentiles(times: Sequence[float]) -> dict[str, float | None]:
    """Give the times below which half, nine in ten and all but one in a hundred are."""
    ordered = sorted(times)
    last = len(ordered) - 1
    return {name: ordered[round(last * part)] if ordered else None for name, part in _PARTS.items()}


_PARTS = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


def print_figures(figures: Mapping[str, Any]) -> None:
    """Print what was measured."""
    if "gave_up_after" in figures:
        print_pairs([("gave up", f"after {span(figures['gave_up_after'])}; all was deleted")])
        return
    submit, drain, wait = figures["submit"], figures["drain"], figures["wait"]
    print_pairs(
        [
            ("jobs", f"{figures['jobs']}, {figures['completed']} completed"),
            ("submitted", f"{submit['per_second']:.0f} a second; {_told(submit)}"),
            ("ended", drain["per_second"] and f"{drain['per_second']:.0f} a second"),
            ("waited", _told(wait)),
        ]
    )


def _told(times: Mapping[str, Any]) -> str | None:
    if times["p50"] is None:
        return None
    half, most, nearly = (f"{times[name] * 1000:.1f} ms" for name in _PARTS)
    return f"half at most {half}, nine in ten {most}, 99 of 100 {nearly}"
