"""Taking many jobs in: what is under way ends with whoever asked for it, and nothing is read twice."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from maitred.core.batch import Batch, BatchOrder
from maitred.core.job import Order, Put, Refusal, Submitter
from maitred.core.settings import Settings
from maitred.service import intake
from maitred.service.caller import Caller
from maitred.service.intake import accept
from maitred.service.keyring import Key
from maitred.store.port import Store
from tests.http.guest import body

pytestmark = pytest.mark.parametrize("kind", ["memory"], indirect=True)

ADA = Submitter("user", "ada")
BY_ADA = Caller(Key("k1", "ada", "submitter", 0, submitters=("user:ada",)))


class Counted:
    """A store whose puts do not end, and whose reads of batches are counted."""

    def __init__(self, store: Store, *, hangs: bool = False) -> None:
        self._store, self.hangs = store, hangs
        self.begun = self.over = self.looks = 0
        self.full = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def put(self, orders: Sequence[Order]) -> list[Put | Refusal]:
        if not self.hangs:
            return await self._store.put(orders)
        self.begun += 1
        if self.begun == intake.CALLS_AT_ONCE:
            self.full.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.over += 1
        return []

    async def batch(self, id: str) -> Batch | None:
        self.looks += 1
        return await self._store.batch(id)


async def test_puts_that_are_under_way_end_with_whoever_asked(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "JOBS_PER_CALL", 1)
    counted = Counted(store, hangs=True)
    bodies = [body(f"k{number}", "user:ada") for number in range(2 * intake.CALLS_AT_ONCE)]
    asking = asyncio.create_task(accept(counted, Settings(), bodies))
    await asyncio.wait_for(counted.full.wait(), 20)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert counted.over == counted.begun == intake.CALLS_AT_ONCE


async def test_a_batch_is_read_once_for_all_jobs_that_a_submitter_adds(store: Store) -> None:
    batch = (await store.create_batch(BatchOrder("", ADA, "", b"{}", False, False))).id
    counted = Counted(store)
    bodies = [body(f"k{number}", "user:ada", batch=batch) for number in range(20)]
    answers = await accept(counted, Settings(), bodies, caller=BY_ADA)
    assert len(answers) == len(bodies)
    assert counted.looks == 1
