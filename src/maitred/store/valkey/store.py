"""A queue on Valkey or Redis: every verb is one call of a function in the server.

The scripts answer plain lists; this turns them into the port's types and refusals into typed errors.
"""

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any, cast
from weakref import WeakValueDictionary

from maitred.address import Site
from maitred.core.classes import DurationClass, Limit
from maitred.core.events import Entry
from maitred.core.invariants import Violation
from maitred.core.job import (
    Admission,
    Denial,
    Finish,
    Lease,
    Message,
    Moment,
    Order,
    Outcome,
    Put,
    Refusal,
    Shift,
    Submitter,
    View,
)
from maitred.core.settings import SECOND, Settings
from maitred.core.snapshot import Snapshot
from maitred.errors import UnknownQueue
from maitred.store.port import (
    CallListener,
    Clock,
    Dice,
    EndedPage,
    LinePage,
    Progress,
    Records,
    ScriptTime,
    Status,
    SubmitterView,
    Survey,
    WorkerView,
)
from maitred.store.valkey import keys
from maitred.store.valkey.calls import Calls
from maitred.store.valkey.checking import check
from maitred.store.valkey.coalesce import Coalescer
from maitred.store.valkey.dump import read_dump
from maitred.store.valkey.keyring import ValkeyKeyring
from maitred.store.valkey.news import read_entry
from maitred.store.valkey.notices import NoticeVerbs
from maitred.store.valkey.output import OutputVerbs
from maitred.store.valkey.pieces import encode_parts
from maitred.store.valkey.records import (
    Page,
    decode_holds,
    decode_message,
    decode_running,
    decode_start,
    decode_view,
    decode_views,
    encode_order,
    encode_pause,
    encode_said,
    raw,
    record_key,
    text,
)


def _random_bytes() -> bytes:
    return os.urandom(16)


class ValkeyStore(OutputVerbs, NoticeVerbs):
    """One queue on a server."""

    def __init__(
        self, calls: Calls, queue: str, *, clock: Clock | None = None, dice: Dice | None = None
    ) -> None:
        """Use the connections of `calls`; the queue exists once it is configured."""
        self.queue = queue
        self._calls = calls
        self._floor = keys.floor(queue)
        self._clock = clock
        self._dice = dice or _random_bytes
        self._puts = Coalescer(self._put)
        self._shown_puts = Coalescer(self._put_shown)

    async def configure(self, settings: Settings) -> None:
        """Make the queue, or give it new settings."""
        await self._calls.check_server()
        written = json.dumps(asdict(settings), separators=(",", ":"), sort_keys=True)
        self._refuse(await self._call("configure", written, len(settings.stages)))
        await self._calls.change(keys.QUEUES, "SADD", keys.QUEUES, self.queue)

    async def settings(self) -> Settings:
        """Show the queue's settings."""
        key = keys.settings(self.queue)
        written = await self._calls.command(key, "GET", key)
        if written is None:
            raise UnknownQueue(self.queue)
        return _read_settings(written)

    async def put(self, orders: Sequence[Order]) -> list[Put | Refusal]:
        """Create or update jobs in turn."""
        return await self._puts.put(orders) if orders else []

    async def _put(self, orders: Sequence[Order]) -> list[Put | Refusal]:
        args: list[bytes] = []
        for order in orders:
            args += (encode_order(order), order.body)
        answer = await self._call("put", *args)
        return [_put_answer(entry) for entry in answer[1:]]

    async def put_shown(self, order: Order) -> tuple[Put | Refusal, View | None]:
        """Create or update a job and show it, in one round trip: the two calls leave together."""
        [shown] = await self._shown_puts.put([order])
        return shown

    async def _put_shown(self, orders: Sequence[Order]) -> list[tuple[Put | Refusal, View | None]]:
        ids = [order.id for order in orders]
        answers, views = await asyncio.gather(self._put(orders), self.read(ids))
        if any(view is None and isinstance(answer, Put) for answer, view in zip(answers, views, strict=True)):
            # In a cluster that is in doubt one of the two may have had to wait.
            views = await self.read(ids)
        return list(zip(answers, views, strict=True))

    async def release(self, id: str, nonce: int | None = None) -> None:
        """Move a job to the front."""
        self._refuse(await self._call("release", raw(id), "" if nonce is None else nonce), id)

    async def delay(self, id: str, nonce: int | None = None) -> None:
        """Move a job to the end."""
        self._refuse(await self._call("delay", raw(id), "" if nonce is None else nonce), id)

    async def remove(self, id: str) -> None:
        """Delete all versions of a job."""
        self._refuse(await self._call("remove", raw(id)), id)

    async def cancel(self, id: str, message: str) -> None:
        """End all versions that have not ended."""
        self._refuse(await self._call("cancel", raw(id), raw(message)), id)

    async def shorten(self, id: str, duration: int) -> None:
        """Lower a job's duration."""
        self._refuse(await self._call("shorten", raw(id), duration), id)

    async def admit(self, order: Order) -> Admission:
        """Start an interactive job at once, or deny it."""
        record, denied = await self._call(
            "admit",
            raw(order.id),
            raw(str(order.submitter)),
            raw(order.need),
            order.body,
            int(order.callback),
            order.abandon,
        )
        return Admission(record, cast(Denial, text(denied)))

    async def pause(self, by: str, reason: str) -> None:
        """Start nothing more."""
        await self._call("pause", encode_pause(by, reason))

    async def resume(self) -> None:
        """Start again."""
        await self._call("resume")

    async def join(self, worker: str, slots: int, serves: Sequence[str], about: bytes = b"") -> Shift:
        """Let a worker in."""
        return await self._shift("join", [], worker, slots, about, *sorted(serves))

    async def take(self, worker: str) -> Shift:
        """Give the worker what it has room for."""
        return await self._shift("take", [], worker)

    async def finish(self, worker: str, results: Sequence[Finish]) -> Shift:
        """End jobs and give the worker the next ones."""
        args: list[bytes] = []
        for result in results:
            record, token = result.lease
            args += (
                record_key(record),
                token,
                raw(result.code),
                raw(result.message),
                result.result,
                encode_said(result),
                encode_parts(result.said),
            )
        return await self._shift("finish", [result.lease for result in results], worker, *args)

    async def hand_back(self, worker: str, leases: Sequence[Lease]) -> Shift:
        """Put jobs back at the front."""
        return await self._shift("hand_back", leases, worker, *self._named(leases))

    async def renew(self, worker: str, held: Sequence[Lease]) -> Shift:
        """Extend the worker's lease."""
        return await self._shift("renew", held, worker, *self._named(held))

    async def leave(self, worker: str) -> Shift:
        """Take the worker's free slots off the floor."""
        return await self._shift("leave", [], worker)

    async def park(self, worker: str, timeout: float) -> list[Message]:
        """Wait for messages in the worker's inbox."""
        messages = await self._calls.pop_all(keys.inbox(self.queue, worker), timeout)
        return [decode_message(message) for message in messages]

    async def tick(self) -> Moment:
        """Do what the clock asks for."""
        next_at, now, idle_until = await self._call("tick")
        return _moment(next_at, now)._replace(idle_until=None if idle_until < 0 else idle_until)

    async def sweep(self, limit: int) -> int:
        """Forget old jobs."""
        return int((await self._call("sweep", limit))[1])

    async def read(self, ids: Sequence[str], version: int | None = None) -> list[View | None]:
        """Show jobs by id."""
        wanted = "" if version is None else version
        args = [part for id in ids for part in (raw(id), wanted)]
        *page, views = await self._call("read", *args)
        shown = Page.read(*page)
        return [decode_view(view, shown) if view else None for view in views]

    async def records(self, records: Sequence[int]) -> Records:
        """Show jobs by their records."""
        *page, views, number = await self._call("records", *(each.to_bytes(8, "big") for each in records))
        return Records({view.job.record: view for view in decode_views(views, Page.read(*page))}, number)

    async def running(self) -> list[View]:
        """Show the jobs that run, in the order of their starts."""
        *page, views = await self._call("running")
        return decode_views(views, Page.read(*page))

    async def line(self, cursor: bytes | None, limit: int) -> LinePage:
        """Show waiting jobs in line order."""
        *page, views, following, total = await self._call("line", cursor or b"", limit)
        return LinePage(decode_views(views, Page.read(*page)), following or None, total)

    async def ended(self, offset: int, limit: int) -> EndedPage:
        """Show ended jobs, last first."""
        *page, views, total = await self._call("ended", offset, limit)
        return EndedPage(decode_views(views, Page.read(*page)), total)

    async def submitter(self, submitter: Submitter, limit: int = 5_000) -> SubmitterView:
        """Show what one submitter has in line."""
        *_, ids, places, recent = await self._call("submitter", raw(str(submitter)), limit)
        pairs = list(zip(places[::2], places[1::2], strict=True))
        return SubmitterView([text(id) for id in ids], pairs, recent)

    async def survey(self, listen: float) -> Survey:
        """Show floor and lanes at one moment, and begin to listen."""
        *page, settings, (last_id, number), waiting, crews, lanes, runs = await self._call(
            "survey", round(listen * SECOND)
        )
        shown = Page.read(*page)
        return Survey(
            now=shown.now,
            settings=_read_settings(settings),
            paused=shown.paused,
            limits=shown.limits,
            used=shown.used,
            waiting=waiting,
            crews=tuple(tuple(text(need) for need in crew) for crew in crews),
            lanes={text(lanes[i]): lanes[i + 1] for i in range(0, len(lanes), 2)},
            runs={
                int.from_bytes(runs[i], "big"): decode_running(
                    runs[i + 1], runs[i + 2], runs[i + 3], shown.now
                )
                for i in range(0, len(runs), 4)
            },
            last_id=text(last_id),
            last_number=number,
        )

    async def places(self, lane: str, after: bytes, limit: int) -> list[bytes]:
        """Give the order of some places of a lane."""
        found: bytes = await self._call("places", raw(lane), after, limit)
        return [found[i : i + 16] for i in range(0, len(found), 16)]

    async def news(self, after: str, timeout: float) -> list[Entry]:
        """Wait for what changed."""
        entries = await self._calls.read_stream(keys.events(self.queue), after, timeout)
        return [read_entry(id, fields[1]) for id, fields in entries]

    async def status(self) -> Status:
        """Show the queue."""
        *page, counts, jobs, waiting, free, settings, crews, workers, holds = await self._call("status")
        shown = Page.read(*page)
        kept = _read_settings(settings)
        serves = json.loads(crews)
        return Status(
            settings=kept,
            now=shown.now,
            counts=dict(zip(("pending", "held", "failed", "completed", *kept.stages), counts, strict=True)),
            jobs=jobs,
            waiting=waiting,
            free=free,
            paused=shown.paused,
            limits=shown.limits,
            used=shown.used,
            workers=[
                WorkerView(text(name), slots, busy, bool(draining), tuple(serves[text(crew)]), end, about)
                for name, slots, draining, crew, end, busy, about in (
                    workers[i : i + 7] for i in range(0, len(workers), 7)
                )
            ],
            holds=decode_holds(holds),
            space_used=0 if shown.space_free is None else kept.space - shown.space_free,
        )

    async def check(self, *, repair: bool = False, progress: Progress | None = None) -> list[Violation]:
        """Look for broken invariants page by page, so that no step blocks the server for long."""
        return await check(self._call, repair=repair, progress=progress)

    async def snapshot(self) -> Snapshot:
        """Give all state at one moment."""
        _, flat = await self._call("snapshot")
        found = {text(flat[i]): flat[i + 2] for i in range(0, len(flat), 3)}
        return read_dump(flat, _read_settings(found["Settings"]))

    async def _call(self, verb: str, *args: Any) -> Any:
        now = self._clock() if self._clock else 0
        return await self._calls.function(verb, self.queue, self._floor, now, self._dice(), *args)

    async def _shift(self, verb: str, leases: Sequence[Lease], worker: str, *args: Any) -> Shift:
        known, next_at, lost, starts, now = await self._call(verb, worker, *args)
        by_record = {record_key(lease.record): lease for lease in leases}
        return Shift(
            [by_record[record] for record in lost],
            [decode_start(start) for start in starts],
            _moment(next_at, now),
            known=bool(known),
        )

    @staticmethod
    def _named(leases: Sequence[Lease]) -> list[bytes]:
        return [part for lease in leases for part in (record_key(lease.record), lease.token)]


def _put_answer(entry: Any) -> Put | Refusal:
    if isinstance(entry, bytes):
        return cast(Refusal, text(entry))
    outcome, record, version = entry
    return Put(cast(Outcome, text(outcome)), record, version)


def _moment(next_at: int, now: int) -> Moment:
    return Moment(now, None if next_at < 0 else next_at)


@lru_cache(1024)
def _read_settings(written: bytes) -> Settings:
    """Read settings; most queues are set to the same, and are asked for theirs again and again."""
    fields = json.loads(written)
    classes = tuple(
        DurationClass(name, cap, limit and Limit(*limit)) for name, cap, limit in fields["classes"]
    )
    lists = {name: tuple(fields[name]) for name in ("stages", "profiles")}
    return Settings(**{**fields, **lists, "classes": classes})


class ValkeyStores:
    """All queues of one server, or of one cluster."""

    def __init__(self, url: str, *, clock: Clock | None = None, dice: Dice | None = None) -> None:
        """Read the address; ConfigError if it is not one. The connection is made at the first call."""
        self._calls = Calls(Site.read(url))
        self._clock, self._dice = clock, dice
        self._queues: WeakValueDictionary[str, ValkeyStore] = WeakValueDictionary()
        self.keyring = ValkeyKeyring(self._calls)

    def queue(self, name: str) -> ValkeyStore:
        """Give the store of one queue, the same to all: what they submit together then travels together."""
        store = self._queues.get(name)
        if store is None:
            store = ValkeyStore(self._calls, name, clock=self._clock, dice=self._dice)
            self._queues[name] = store
        return store

    async def names(self) -> list[str]:
        """Name the queues that were configured."""
        return sorted(text(name) for name in await self._calls.command(keys.QUEUES, "SMEMBERS", keys.QUEUES))

    async def ping(self) -> None:
        """Raise StoreUnavailable unless the server answers, in a cluster all that have slots."""
        await self._calls.ping()

    def on_call(self, listener: CallListener) -> None:
        """Tell of each call of a script."""
        self._calls.listeners.append(listener)

    async def script_time(self) -> ScriptTime | None:
        """Tell how busy the servers are with scripts."""
        return await self._calls.script_time()

    async def close(self) -> None:
        """Close the connections."""
        self._calls.close()
