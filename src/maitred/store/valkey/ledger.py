"""The verbs of the Ledger on Valkey or Redis: retries, holds, batches, and agreeing with a tree elsewhere."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

from maitred.core.batch import Batch, BatchOrder, BatchPut, BatchState, Errand, RowView, Work
from maitred.core.job import HoldKind, Job, Lease, Restored, TakenUp
from maitred.errors import LockLost
from maitred.store.port import BatchPage, HeldPage, RowPage, Unsaid
from maitred.store.valkey.batches import CODES, decode_batch, decode_batches, read_state
from maitred.store.valkey.records import (
    Page,
    decode_views,
    encode_extra,
    encode_pause,
    encode_record,
    raw,
    record_key,
    text,
)
from maitred.store.valkey.refusals import refuse

BATCHES_AT_ONCE = 200


class LedgerVerbs(ABC):
    """The part of a queue's store that the Ledger adds; each verb is one call of a script."""

    queue: str

    @abstractmethod
    async def _call(self, verb: str, *args: Any) -> Any:
        """Call a script."""

    def _refuse(self, answer: Any, id: str = "") -> None:
        refuse(answer, self.queue, id)

    async def prioritise(self, id: str, priority: int) -> None:
        """Give a waiting job another priority."""
        self._refuse(await self._call("prioritise", raw(id), priority), id)

    async def retry(self, id: str) -> None:
        """Let a failed job go on where it failed."""
        self._refuse(await self._call("retry", raw(id)), id)

    async def hold(self, kind: HoldKind, name: str, by: str, reason: str) -> None:
        """Hold a job, or many."""
        self._refuse(await self._call("hold", kind, raw(name), encode_pause(by, reason)), name)

    async def unhold(self, kind: HoldKind, name: str) -> None:
        """Take a hold away."""
        self._refuse(await self._call("unhold", kind, raw(name)), name)

    async def create_batch(self, order: BatchOrder) -> BatchPut:
        """Make a batch, or give the known one."""
        answer = await self._call(
            "create_batch",
            raw(order.external_id),
            raw(str(order.submitter)),
            raw(order.profile),
            order.submission,
            int(order.expanding),
            int(order.sealed),
        )
        self._refuse(answer)
        return BatchPut(text(answer[0]), created=bool(answer[1]))

    async def seal_batch(self, id: str, *, token: bytes = b"", fault: str = "") -> None:
        """Close a batch."""
        self._refuse(await self._call("seal_batch", raw(id), token, raw(fault)), id)

    async def lock_batch(self, owner: str, token: bytes) -> Errand | None:
        """Lock the oldest batch that has work."""
        answer = await self._call("lock_batch", raw(owner), token)
        if not answer:
            return None
        *batch, work = answer
        return Errand(decode_batch(*batch), cast(Work, text(work)))

    async def keep_batch(self, id: str, token: bytes) -> None:
        """Keep a lock."""
        self._refuse(await self._call("keep_batch", raw(id), token, 0), id)

    async def unlock_batch(self, id: str, token: bytes) -> None:
        """Give a lock up."""
        with suppress(LockLost):
            self._refuse(await self._call("keep_batch", raw(id), token, 1), id)

    async def mark_rows(self, id: str, token: bytes, reported: Sequence[tuple[str, str]]) -> None:
        """Note what is being reported of some jobs."""
        args = [raw(part) for row in reported for part in row]
        self._refuse(await self._call("mark_rows", raw(id), token, *args), id)

    async def report_batch(self, id: str, token: bytes, report: bytes, *, send: bool) -> BatchState:
        """Store a report and end the batch."""
        answer = await self._call("report_batch", raw(id), token, report, int(send))
        self._refuse(answer, id)
        return read_state(answer[0])

    async def sent_batch(self, id: str, token: bytes, try_again_in: int | None) -> None:
        """Note what became of sending a report."""
        again = "" if try_again_in is None else try_again_in
        self._refuse(await self._call("sent_batch", raw(id), token, again), id)

    async def update_batch(self, id: str) -> None:
        """Ask for an update report."""
        self._refuse(await self._call("update_batch", raw(id)), id)

    async def remove_batch(self, id: str) -> None:
        """Delete a batch with its jobs."""
        self._refuse(await self._call("remove_batch", raw(id)), id)

    async def batch(self, id: str) -> Batch | None:
        """Show a batch."""
        found = await self._call("batch", raw(id))
        return decode_batch(*found) if found else None

    async def batches(
        self,
        state: str | None = None,
        external_id: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> BatchPage:
        """Show batches, newest first."""
        code = CODES[BatchState(state)] if state else ""
        found: list[Batch] = []
        following = cursor or ""
        total = 0
        while True:
            flat, more, total = await self._call(
                "batches", code, raw(external_id or ""), following, limit - len(found), BATCHES_AT_ONCE
            )
            found += decode_batches(flat)
            following = text(more)
            if not following or len(found) == limit:
                return BatchPage(found, following or None, None if state else total)

    async def batch_rows(self, id: str, after: int, limit: int) -> RowPage:
        """Show the jobs of a batch."""
        answer = await self._call("batch_rows", raw(id), after, limit)
        self._refuse(answer, id)
        flat, following = answer
        rows = [
            RowView(text(flat[i]), flat[i + 1], *(text(part) for part in flat[i + 2 : i + 5]))
            for i in range(0, len(flat), 5)
        ]
        return RowPage(rows, following or None)

    async def restore(self, jobs: Sequence[Job]) -> list[Restored]:
        """Take in jobs as the ledger's tree has them."""
        args = [part for job in jobs for part in (encode_record(job), encode_extra(job), job.body, job.data)]
        _, *answers = await self._call("restore", *args)
        return [cast(Restored, text(answer)) for answer in answers]

    async def note_status(self, worker: str, taken: Sequence[TakenUp]) -> list[Lease]:
        """Note what a worker took up in the tree."""
        args = [part for (record, token), status in taken for part in (record_key(record), token, status)]
        lost = await self._call("note_status", worker, *args)
        by_record = {record_key(lease.record): lease for lease, _ in taken}
        return [by_record[record] for record in lost]

    async def unsaid(self, limit: int) -> Unsaid:
        """Show what the tree has to hear."""
        *page, views, gone = await self._call("unsaid", limit)
        return Unsaid(decode_views(views, Page.read(*page)), [text(id) for id in gone])

    async def said(self, record: int, state: str, status: int) -> None:
        """Note that the tree has heard of a state."""
        await self._call("said", record_key(record), state, status)

    async def forgotten(self, ledger_ids: Sequence[str]) -> None:
        """Note that the tree has forgotten jobs."""
        await self._call("said", b"", "", 0, *(raw(id) for id in ledger_ids))

    async def held(self, offset: int, limit: int) -> HeldPage:
        """Show the jobs that are held."""
        *page, views, total = await self._call("held", offset, limit)
        return HeldPage(decode_views(views, Page.read(*page)), total)
