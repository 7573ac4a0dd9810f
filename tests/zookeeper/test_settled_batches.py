"""Whoever looks for work reads a batch that has ended once, and again only when its state moves."""

import pytest

from maitred.core.batch import Batch, BatchState
from maitred.store.zookeeper.ledger import Ledger
from maitred.store.zookeeper.records import BatchEntry
from tests.waiting import eventually
from tests.zookeeper.party import RUN, batch_of, failed


def updating(batch: Batch) -> bool:
    return batch.state is BatchState.UPDATE_REPORTING


async def test_a_failed_batch_is_read_again_only_when_an_update_is_asked_for(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    bid, [jid] = await batch_of(ledger, "a")
    await failed(ledger, jid)
    lock = await ledger.batches.lock(bid, "me", RUN)
    assert lock
    await ledger.batches.begin_report(bid, lock)
    await ledger.batches.store_report(bid, lock, b'{"sequence":1,"failed":[]}', send=False)
    await ledger.locks.give_up(lock)
    read, reads = ledger.reader.batch, 0

    async def counting(id: str, *, whole: bool = True) -> BatchEntry | None:
        nonlocal reads
        reads += 1
        return await read(id, whole=whole)

    monkeypatch.setattr(ledger.reader, "batch", counting)
    assert await ledger.batches.lock_oldest("me", RUN, updating) is None
    seen, reads = reads, 0
    assert seen > 0
    assert await ledger.batches.lock_oldest("me", RUN, updating) is None
    assert reads == 0
    await ledger.batches.begin_update(bid)

    async def found() -> bool:
        return await ledger.batches.lock_oldest("me", RUN, updating) is not None

    await eventually(found, 20)
