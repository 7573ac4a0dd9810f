"""Watching batches: their state and counts as they change, and their reports.

A batch that is watched is read when something changed in it, once, however many watch it, and a few times a
second at most. So counts are told as they are then, and not each step of them. An event's id
names the last report that was told and a mark of the state, so that a watcher that comes back hears what it
has not heard; a report that it cannot be told any more, since only the last is kept, is a `reset`.
"""

import asyncio
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Self
from zlib import crc32

import structlog

from maitred.core.batch import Batch, BatchState
from maitred.core.events import BatchChanged, Entry
from maitred.errors import MaitredError, StoreUnavailable, UnknownBatch
from maitred.service.batch_document import batch_state_document, report_news
from maitred.service.foresight import Foresight
from maitred.service.telling import Telling, Told
from maitred.store.port import Store
from maitred.wire import encode_json

# How often a batch is read, at most; one that takes long to read, after as many times that as this.
READ_EVERY = 0.25
BREATH = 10
# A store that does not answer is asked again after ten times this, in seconds.
PAUSE = 0.1
PATIENCE = 5.0

_END = "end"
_GONE = "gone"
_MARK = re.compile(r"([0-9]{1,16})\.(\w{3,8})", re.ASCII)
_ENDS = (BatchState.COMPLETED, BatchState.FAILED)

_log = structlog.get_logger()


class BatchMark(NamedTuple):
    """How far a watcher came: the last report that it was told, and a mark of the state."""

    sequence: int
    digest: str

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Read the id of an event; None if it is none."""
        found = _MARK.fullmatch(text)
        return cls(int(found[1]), found[2]) if found else None


@dataclass(eq=False)
class BatchWatch(Telling):
    """One watcher of one batch; `sequence` is the last report that it was told."""

    id: str
    sequence: int = 0
    digest: str = ""

    def tell(self, batch: Batch) -> None:
        """Tell the batch as it is, if that is news; its report once it has ended, and then no more."""
        document = batch_state_document(batch)
        digest = f"{crc32(encode_json(document)):08x}"
        if digest != self.digest:
            self.digest = digest
            self._tell(Told("state", document, f"{self.sequence}.{digest}"))
        if batch.state not in _ENDS:
            return
        if batch.sequence > self.sequence:
            if batch.sequence > self.sequence + 1:
                self.tell_reset()
            self.sequence = batch.sequence
            self._tell(Told("report", report_news(batch), f"{self.sequence}.{_END}"))
        self.close()

    def tell_gone(self) -> None:
        """Tell that the batch was deleted."""
        self._tell(Told("state", {"state": "deleted"}, f"{self.sequence}.{_GONE}"))
        self.close()

    def tell_reset(self) -> None:
        """Tell that something may have happened that cannot be told any more."""
        self.digest = ""
        self._tell(Told("reset", {}))


class BatchWatchers:
    """Who watches batches of one queue; `run` it in a task beside the foresight."""

    def __init__(self, store: Store, foresight: Foresight) -> None:
        self._store = store
        self._foresight = foresight
        self._by_id: dict[str, list[BatchWatch]] = {}
        self._woken = asyncio.Event()
        self._touched: set[str] = set()
        foresight.listeners.append(self)

    def __len__(self) -> int:
        return sum(map(len, self._by_id.values()))

    async def open(self, id: str, last: str | None = None) -> BatchWatch | None:
        """Begin to watch a batch; `last` is the id of the last event that the watcher had.

        None if there is nothing more to tell. Raises `UnknownBatch`, or `StoreUnavailable` while nothing
        can be heard.
        """
        mark = BatchMark.read(last) if last else None
        if mark and mark.digest == _GONE:
            return None
        try:
            async with asyncio.timeout(PATIENCE):
                await self._foresight.ready.wait()
        except TimeoutError:
            raise StoreUnavailable from None
        batch = await self._store.batch(id)
        if batch is None:
            raise UnknownBatch(self._store.queue, id)
        over = batch.state in _ENDS
        if over and mark == (batch.sequence, _END):
            return None
        watch = BatchWatch(id)
        if mark and mark.sequence == batch.sequence - over:
            watch.sequence, watch.digest = mark
        else:
            # Of a batch that goes on the last report is old news.
            watch.sequence = batch.sequence - over
            if last:
                watch.tell_reset()
        watch.tell(batch)
        if not watch.closed:
            self._by_id.setdefault(id, []).append(watch)
            watch.leave = partial(self.leave, watch)
            watch.opened()
            self._touch([id])
        return watch

    def leave(self, watch: BatchWatch) -> None:
        """Watch no more."""
        watch.close()
        watches = self._by_id.get(watch.id, [])
        if watch in watches:
            watches.remove(watch)
        if not watches:
            self._by_id.pop(watch.id, None)

    def close(self) -> None:
        """End all watches; whoever watches may come back, to this server or to another."""
        for watches in list(self._by_id.values()):
            for watch in list(watches):
                self.leave(watch)

    def hear(self, entries: Sequence[Entry]) -> None:
        """Hear what happened in the queue; only what concerns a watched batch is kept."""
        if self._by_id:
            events = (event for entry in entries for event in entry.events)
            self._touch(event.id for event in events if isinstance(event, BatchChanged))

    def touch(self, id: str) -> None:
        """Hear that a batch changed whose ledger is elsewhere."""
        self._touch([id])

    def missed(self) -> None:
        """Hear that something was missed; the next look tells what is now."""
        self._touch(self._by_id)

    def _touch(self, ids: Iterable[str]) -> None:
        self._touched.update(id for id in ids if id in self._by_id)
        if self._touched:
            self._woken.set()

    async def run(self) -> None:
        """Look at what is watched whenever it changed, until cancelled."""
        while True:
            await self._woken.wait()
            try:
                took = await self._look()
            except MaitredError as error:
                _log.info("watchers of batches have to wait", queue=self._store.queue, error=str(error))
                self._woken.set()
                took = PAUSE
            # A batch whose submission is large takes long to read, and is not read all the time.
            await asyncio.sleep(max(READ_EVERY, BREATH * took))

    async def _look(self) -> float:
        """Read each batch that changed and tell of it; give the seconds that this took."""
        begun = time.monotonic()
        self._woken.clear()
        while self._touched:
            # What changes while it is read may not be in what was read, and is looked at again.
            id = self._touched.pop()
            try:
                batch = await self._store.batch(id)
            except MaitredError:
                self._touched.add(id)
                raise
            self._tell(id, batch)
        return time.monotonic() - begun

    def _tell(self, id: str, batch: Batch | None) -> None:
        for watch in list(self._by_id.get(id, [])):
            if batch is None:
                watch.tell_gone()
            else:
                watch.tell(batch)
            if watch.closed:
                self.leave(watch)
