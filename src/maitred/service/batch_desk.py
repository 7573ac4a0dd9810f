"""The desk for batches: submit, add, seal, look at, retry, report, hold and delete.

A batch is stored as it was sent; a clerk expands it into jobs, reports it and sends the report. What can go
wrong is raised as a type of `maitred.errors`; in a list of many jobs, each one's error stands in its place.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from maitred.core.batch import Batch, BatchOrder, BatchState
from maitred.core.job import DEFAULT_PRIORITY, Submitter
from maitred.errors import (
    BatchReporting,
    BatchSealed,
    Fault,
    Forbidden,
    InvalidJob,
    MaitredError,
    NoReport,
    NotFailed,
    OtherSubmitter,
    StoreUnavailable,
    TooLarge,
    UnknownBatch,
    UnknownJob,
)
from maitred.service.batch_document import batch_document
from maitred.service.batch_watch import BatchWatch
from maitred.service.caller import HOUSE, Caller
from maitred.service.cursor import read_text_cursor, write_text_cursor
from maitred.service.document import Document
from maitred.service.foresights import DEAF
from maitred.service.intake import Accepted
from maitred.service.keyring import LOCAL, Key
from maitred.service.order import allowed_by
from maitred.wire import BatchBody, JobBody, completed, decode_json, encode_json, parse_batch
from maitred.wire.batch import LIMITED, SUBMITTED_BY

T = TypeVar("T")

MOST_BYTES = 64 << 20
ROWS_AT_ONCE = 128
RETRIES_AT_ONCE = 16

if TYPE_CHECKING:
    from maitred.service.desk import Desk


class BatchDesk:
    """The use cases on the batches of a desk's queues; `UnknownBatch` by every method that names one."""

    def __init__(self, desk: "Desk") -> None:
        self._desk = desk

    # ---------------------------------------------------------------- submitters

    async def create(self, queue: str, body: object, caller: Caller = HOUSE) -> Document:
        """Make a batch, or find the submitter's with the same external id; give its document, with `outcome`.

        Raises `InvalidJob` with all faults, `TooLarge`, `Forbidden`, or `OtherSubmitter` if the external id
        is another's.
        """
        settings = await self._desk.settings(queue)
        checked = parse_batch(body, allowed_by(settings))
        _must_be_allowed(checked, caller)
        sent = dict(body) if isinstance(body, Mapping) else _plain(checked)
        submission = encode_json(sent | _signed_by(caller))
        if len(submission) > MOST_BYTES:
            raise TooLarge(len(submission), MOST_BYTES)
        order = BatchOrder(
            external_id=checked.external_id or "",
            submitter=Submitter(checked.submitter.type, checked.submitter.id),
            profile=checked.profile_name or "",
            submission=submission,
            expanding=checked.expanding,
            sealed=checked.seal,
        )
        try:
            put = await self._desk.store(queue).create_batch(order)
        except OtherSubmitter:
            raise OtherSubmitter(f"The external id {order.external_id!r} is another submitter's.") from None
        self._call_clerk(queue)
        document = await self.read(queue, put.id)
        return {**document, "outcome": "created" if put.created else "known"}

    async def add(
        self, queue: str, id: str, bodies: Sequence[object], caller: Caller = HOUSE
    ) -> list[Document | MaitredError]:
        """Add jobs to an open batch; give each one's document or error, in order.

        A body may leave to the batch what those in its submission may. A key that the batch has is passed
        over: its outcome is `known`. Raises `BatchSealed` if no job can be added at all.
        """
        batch = await self._open(queue, id)
        taken = await self._desk.put_many(queue, _in_batch(bodies, batch), caller, only_new=True)
        return _in_place(bodies, batch, taken)

    async def accept(self, queue: str, id: str, bodies: Sequence[object]) -> list[Accepted | MaitredError]:
        """Add jobs to an open batch, as `add` does, without reading them back."""
        batch = await self._open(queue, id)
        taken = await self._desk.accept(queue, _in_batch(bodies, batch), only_new=True)
        return _in_place(bodies, batch, taken)

    async def seal(self, queue: str, id: str) -> Document:
        """Close a batch; `BatchSealed` if it is."""
        await self._desk.store(queue).seal_batch(id)
        self._call_clerk(queue)
        return await self.read(queue, id)

    # ---------------------------------------------------------------- readers

    async def read(self, queue: str, id: str) -> Document:
        """Show a batch."""
        batch = await self._batch(queue, id)
        return (await self._documents(queue, [batch]))[0]

    async def page(
        self,
        queue: str,
        state: str | None = None,
        external_id: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
        *,
        caller: Caller = HOUSE,
    ) -> Document:
        """List batches, newest first; a submitter's key gets its own only, counted where one page has all."""
        if state is not None and state not in set(BatchState):
            raise InvalidJob([Fault("state", f"must be one of {', '.join(BatchState)}")])
        after = read_text_cursor(cursor) if cursor else None
        page = await self._desk.store(queue).batches(state, external_id, after, limit)
        own = [batch for batch in page.batches if caller.owns(batch.submitter)]
        counted = None if after or page.next else len(own)
        return {
            "items": await self._documents(queue, own),
            "next": write_text_cursor(page.next) if page.next else None,
            "total": counted if caller.limited else page.total,
        }

    async def report(self, queue: str, id: str) -> Document:
        """Show the last report of a batch; `NoReport` if there is none yet."""
        batch = await self._batch(queue, id)
        if not batch.report:
            raise NoReport
        report: Document = decode_json(batch.report)
        return report

    async def watch(self, queue: str, id: str, last: str | None = None) -> BatchWatch | None:
        """Watch a batch until it is reported; `last` is the last event's id.

        None if there is nothing more to tell. Raises `StoreUnavailable` where nobody listens to the store.
        The caller leaves the watch in the end.
        """
        await self._desk.settings(queue)
        foresights = self._desk.foresights
        watchers = None if foresights is None else foresights.batch_watchers(queue)
        if watchers is None:
            raise StoreUnavailable(DEAF)
        return await watchers.open(id, last)

    # ---------------------------------------------------------------- operators

    async def retry(self, queue: str, id: str) -> int:
        """Retry the failed jobs of a batch; give how many that were.

        Raises `BatchReporting` while its report is made. One that is no longer failed when its turn comes,
        since somebody else retried or deleted it, is passed over.
        """
        store = self._desk.store(queue)
        if (await self._batch(queue, id)).frozen:
            raise BatchReporting
        turns = asyncio.Semaphore(RETRIES_AT_ONCE)

        async def retried(job: str) -> bool:
            async with turns:
                try:
                    await store.retry(job)
                except (NotFailed, UnknownJob):
                    return False
                return True

        count, after = 0, 0
        while True:
            page = await store.batch_rows(id, after, ROWS_AT_ONCE)
            failed = [row.id for row in page.rows if row.state == "failed"]
            views = await store.read(failed) if failed else []
            # A key that was submitted again after the report is no longer this batch's.
            mine = [view.job.id for view in views if view and view.job.batch == id]
            count += sum(await asyncio.gather(*map(retried, mine)))
            if page.next is None:
                return count
            after = page.next

    async def update_report(self, queue: str, id: str) -> Document:
        """Ask for a report of what changed since the last; `IllegalMove` unless the batch has failed."""
        await self._desk.store(queue).update_batch(id)
        self._call_clerk(queue)
        return await self.read(queue, id)

    async def hold(self, queue: str, id: str, *, by: str, reason: str = "") -> Document:
        """Hold a batch with its jobs; `IllegalMove` of one that is past processing."""
        await self._desk.store(queue).hold("batch", id, by, reason)
        return await self.read(queue, id)

    async def resume(self, queue: str, id: str) -> Document:
        """Let a batch go on; `NotHeld` if it is not held."""
        await self._desk.store(queue).unhold("batch", id)
        self._call_clerk(queue)
        return await self.read(queue, id)

    async def remove(self, queue: str, id: str, caller: Caller = HOUSE) -> None:
        """Delete a batch with its jobs; `BatchUnfinished`, `BatchReporting`, or `Forbidden`."""
        if caller.limited:
            await self._must_own_jobs(queue, id, caller)
        await self._desk.store(queue).remove_batch(id)

    async def _must_own_jobs(self, queue: str, id: str, caller: Caller) -> None:
        """Raise `Forbidden` if the batch holds a job that this caller may not touch."""
        store, after = self._desk.store(queue), 0
        while True:
            page = await store.batch_rows(id, after, ROWS_AT_ONCE)
            views = await store.read([row.id for row in page.rows])
            if not all(caller.owns(view.job.submitter) for view in views if view):
                raise Forbidden("the batch holds jobs of other submitters")
            if page.next is None:
                return
            after = page.next

    # ---------------------------------------------------------------- parts of the above

    def _call_clerk(self, queue: str) -> None:
        """Let a clerk of this server look for work, if there is one; others look by themselves."""
        if self._desk.clerks is not None:
            self._desk.clerks.wake(queue)

    async def _batch(self, queue: str, id: str) -> Batch:
        batch = await self._desk.store(queue).batch(id)
        if batch is None:
            raise UnknownBatch(queue, id)
        return batch

    async def _open(self, queue: str, id: str) -> Batch:
        batch = await self._batch(queue, id)
        if batch.sealed or batch.sealing:
            raise BatchSealed
        return batch

    async def _documents(self, queue: str, batches: Sequence[Batch]) -> list[Document]:
        """Give the documents of batches; what holds them stands with the queue."""
        held = any(batch.state is BatchState.HELD for batch in batches)
        holds = (await self._desk.store(queue).status()).holds if held else ()
        return [batch_document(queue, batch, holds) for batch in batches]


def _must_be_allowed(body: BatchBody, caller: Caller) -> None:
    """Raise `Forbidden` if a caller may not make this batch, or one of its jobs."""
    if not caller.limited:
        return
    caller.must_own(Submitter(body.submitter.type, body.submitter.id))
    caller.must_be_common(bulk=body.bulk, priority=body.priority)
    for index in range(len(body.jobs or ())):
        job = body.job(index)
        caller.must_own(Submitter(job["submitter"]["type"], job["submitter"]["id"]))
        caller.must_be_common(
            immediate=bool(job.get("immediate")),
            bulk=bool(job.get("bulk")),
            priority=job.get("priority", DEFAULT_PRIORITY),
        )


def _signed_by(caller: Caller) -> dict[str, Any]:
    """Give what is kept with a submission of who made it, so that its jobs and report are that key's."""
    if caller.key.id == LOCAL:
        return {}
    return {SUBMITTED_BY: caller.key.id} | ({LIMITED: True} if caller.limited else {})


def sender(submission: Mapping[str, Any], body: BatchBody) -> Caller:
    """Give who made a batch, as far as that says what its jobs may be; whose they are was checked then."""
    by = submission.get(SUBMITTED_BY, LOCAL)
    if not submission.get(LIMITED):
        return Caller(replace(HOUSE.key, id=by))
    jobs = [body.job(index)["submitter"] for index in range(len(body.jobs or ()))]
    names = {(body.submitter.type, body.submitter.id), *((who["type"], who["id"]) for who in jobs)}
    submitters = tuple(f"{kind}:{id}" for kind, id in names)
    return Caller(Key(by, by, "submitter", 0, submitters=submitters))


def _named(body: object) -> str | None:
    """Give the batch that a body names itself, if it does."""
    if isinstance(body, JobBody):
        return body.batch
    named = body.get("batch") if isinstance(body, Mapping) else None
    return named if isinstance(named, str) else None


def _in_batch(bodies: Sequence[object], batch: Batch) -> list[object]:
    """Put bodies into a batch, with what they leave to it; those that name another are left out."""
    shared = decode_json(batch.submission)
    return [_with_batch(body, batch.id, shared) for body in bodies if _named(body) in (None, batch.id)]


def _with_batch(body: object, id: str, shared: dict[str, Any]) -> object:
    if isinstance(body, JobBody):
        return body.model_copy(update={"batch": id})
    return {**completed(shared, dict(body)), "batch": id} if isinstance(body, Mapping) else body


def _in_place(bodies: Sequence[object], batch: Batch, taken: Sequence[T]) -> list[T | MaitredError]:
    """Give what became of each body, in order; one that named another batch is refused."""
    answers = iter(taken)
    refusal = InvalidJob([Fault("batch", f"must be {batch.id}, to which it is added, or left out")])
    return [next(answers) if _named(body) in (None, batch.id) else refusal for body in bodies]


def _plain(body: Any) -> Any:
    return body.model_dump(mode="json", by_alias=True, exclude_unset=True)
