"""A store that passes every verb on to another: the base of those that change some of them.

What each verb promises is said in the port.
"""
# ruff: noqa: D102

from abc import ABC, abstractmethod
from collections.abc import Sequence

from maitred.core.batch import Batch, BatchOrder, BatchPut, BatchState, Errand
from maitred.core.events import Entry
from maitred.core.invariants import Violation
from maitred.core.job import (
    Admission,
    Finish,
    HoldKind,
    Job,
    Lease,
    Message,
    Moment,
    Order,
    Put,
    Refusal,
    Restored,
    Shift,
    Submitter,
    TakenUp,
    View,
)
from maitred.core.notices import Delivery, NoticeErrand
from maitred.core.output import Artifact, Output, Saying
from maitred.core.settings import Settings
from maitred.core.snapshot import Snapshot
from maitred.store.port import (
    BatchPage,
    EndedPage,
    HeldPage,
    LinePage,
    Progress,
    Records,
    RowPage,
    Status,
    Store,
    SubmitterView,
    Survey,
    Unsaid,
)


class PassingOn(ABC):
    """Every verb of a store, done by the one that `_target` gives."""

    queue: str

    @abstractmethod
    async def _target(self) -> Store:
        """Give the store that a verb is passed on to."""

    async def configure(self, settings: Settings) -> None:
        return await (await self._target()).configure(settings)

    async def put(self, orders: Sequence[Order]) -> list[Put | Refusal]:
        return await (await self._target()).put(orders)

    async def put_shown(self, order: Order) -> tuple[Put | Refusal, View | None]:
        return await (await self._target()).put_shown(order)

    async def release(self, id: str, nonce: int | None = None) -> None:
        return await (await self._target()).release(id, nonce)

    async def delay(self, id: str, nonce: int | None = None) -> None:
        return await (await self._target()).delay(id, nonce)

    async def remove(self, id: str) -> None:
        return await (await self._target()).remove(id)

    async def cancel(self, id: str, message: str) -> None:
        return await (await self._target()).cancel(id, message)

    async def shorten(self, id: str, duration: int) -> None:
        return await (await self._target()).shorten(id, duration)

    async def admit(self, order: Order) -> Admission:
        return await (await self._target()).admit(order)

    async def prioritise(self, id: str, priority: int) -> None:
        return await (await self._target()).prioritise(id, priority)

    async def retry(self, id: str) -> None:
        return await (await self._target()).retry(id)

    async def hold(self, kind: HoldKind, name: str, by: str, reason: str) -> None:
        return await (await self._target()).hold(kind, name, by, reason)

    async def unhold(self, kind: HoldKind, name: str) -> None:
        return await (await self._target()).unhold(kind, name)

    async def create_batch(self, order: BatchOrder) -> BatchPut:
        return await (await self._target()).create_batch(order)

    async def seal_batch(self, id: str, *, token: bytes = b"", fault: str = "") -> None:
        return await (await self._target()).seal_batch(id, token=token, fault=fault)

    async def lock_batch(self, owner: str, token: bytes) -> Errand | None:
        return await (await self._target()).lock_batch(owner, token)

    async def keep_batch(self, id: str, token: bytes) -> None:
        return await (await self._target()).keep_batch(id, token)

    async def unlock_batch(self, id: str, token: bytes) -> None:
        return await (await self._target()).unlock_batch(id, token)

    async def mark_rows(self, id: str, token: bytes, reported: Sequence[tuple[str, str]]) -> None:
        return await (await self._target()).mark_rows(id, token, reported)

    async def report_batch(self, id: str, token: bytes, report: bytes, *, send: bool) -> BatchState:
        return await (await self._target()).report_batch(id, token, report, send=send)

    async def sent_batch(self, id: str, token: bytes, try_again_in: int | None) -> None:
        return await (await self._target()).sent_batch(id, token, try_again_in)

    async def update_batch(self, id: str) -> None:
        return await (await self._target()).update_batch(id)

    async def remove_batch(self, id: str) -> None:
        return await (await self._target()).remove_batch(id)

    async def batch(self, id: str) -> Batch | None:
        return await (await self._target()).batch(id)

    async def batches(
        self,
        state: str | None = None,
        external_id: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> BatchPage:
        return await (await self._target()).batches(state, external_id, cursor, limit)

    async def batch_rows(self, id: str, after: int, limit: int) -> RowPage:
        return await (await self._target()).batch_rows(id, after, limit)

    async def restore(self, jobs: Sequence[Job]) -> list[Restored]:
        return await (await self._target()).restore(jobs)

    async def note_status(self, worker: str, taken: Sequence[TakenUp]) -> list[Lease]:
        return await (await self._target()).note_status(worker, taken)

    async def unsaid(self, limit: int) -> Unsaid:
        return await (await self._target()).unsaid(limit)

    async def said(self, record: int, state: str, status: int) -> None:
        return await (await self._target()).said(record, state, status)

    async def forgotten(self, ledger_ids: Sequence[str]) -> None:
        return await (await self._target()).forgotten(ledger_ids)

    async def attend(self, ids: Sequence[str]) -> None:
        return await (await self._target()).attend(ids)

    async def lock_notices(self, owner: str, token: bytes, limit: int) -> list[NoticeErrand]:
        return await (await self._target()).lock_notices(owner, token, limit)

    async def told_notice(self, record: int, number: int, token: bytes, delivery: Delivery) -> None:
        return await (await self._target()).told_notice(record, number, token, delivery)

    async def deliveries(self, id: str, version: int | None = None) -> list[Delivery] | None:
        return await (await self._target()).deliveries(id, version)

    async def held(self, offset: int, limit: int) -> HeldPage:
        return await (await self._target()).held(offset, limit)

    async def pause(self, by: str, reason: str) -> None:
        return await (await self._target()).pause(by, reason)

    async def resume(self) -> None:
        return await (await self._target()).resume()

    async def join(self, worker: str, slots: int, serves: Sequence[str], about: bytes = b"") -> Shift:
        return await (await self._target()).join(worker, slots, serves, about)

    async def take(self, worker: str) -> Shift:
        return await (await self._target()).take(worker)

    async def finish(self, worker: str, results: Sequence[Finish]) -> Shift:
        return await (await self._target()).finish(worker, results)

    async def hand_back(self, worker: str, leases: Sequence[Lease]) -> Shift:
        return await (await self._target()).hand_back(worker, leases)

    async def renew(self, worker: str, held: Sequence[Lease]) -> Shift:
        return await (await self._target()).renew(worker, held)

    async def leave(self, worker: str) -> Shift:
        return await (await self._target()).leave(worker)

    async def park(self, worker: str, timeout: float) -> list[Message]:
        return await (await self._target()).park(worker, timeout)

    async def say(self, worker: str, sayings: Sequence[Saying]) -> list[Lease]:
        return await (await self._target()).say(worker, sayings)

    async def output(self, id: str, version: int | None, after: int, limit: int) -> Output | None:
        return await (await self._target()).output(id, version, after, limit)

    async def keep(self, worker: str, lease: Lease, artifacts: Sequence[Artifact]) -> None:
        return await (await self._target()).keep(worker, lease, artifacts)

    async def artifact(self, id: str, version: int | None, name: str) -> Artifact | None:
        return await (await self._target()).artifact(id, version, name)

    async def type_in(self, record: int, data: bytes, size: tuple[int, int] | None) -> bool:
        return await (await self._target()).type_in(record, data, size)

    async def tick(self) -> Moment:
        return await (await self._target()).tick()

    async def sweep(self, limit: int) -> int:
        return await (await self._target()).sweep(limit)

    async def read(self, ids: Sequence[str], version: int | None = None) -> list[View | None]:
        return await (await self._target()).read(ids, version)

    async def records(self, records: Sequence[int]) -> Records:
        return await (await self._target()).records(records)

    async def running(self) -> list[View]:
        return await (await self._target()).running()

    async def line(self, cursor: bytes | None, limit: int) -> LinePage:
        return await (await self._target()).line(cursor, limit)

    async def ended(self, offset: int, limit: int) -> EndedPage:
        return await (await self._target()).ended(offset, limit)

    async def submitter(self, submitter: Submitter, limit: int = 5_000) -> SubmitterView:
        return await (await self._target()).submitter(submitter, limit)

    async def survey(self, listen: float) -> Survey:
        return await (await self._target()).survey(listen)

    async def places(self, lane: str, after: bytes, limit: int) -> list[bytes]:
        return await (await self._target()).places(lane, after, limit)

    async def news(self, after: str, timeout: float) -> list[Entry]:
        return await (await self._target()).news(after, timeout)

    async def settings(self) -> Settings:
        return await (await self._target()).settings()

    async def status(self) -> Status:
        return await (await self._target()).status()

    async def check(self, *, repair: bool = False, progress: Progress | None = None) -> list[Violation]:
        return await (await self._target()).check(repair=repair, progress=progress)

    async def snapshot(self) -> Snapshot:
        return await (await self._target()).snapshot()
