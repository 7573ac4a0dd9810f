"""What this process hears of batches in the tree: one watch for each that is looked at, none for others."""

import pytest

from maitred.errors import StoreUnavailable
from maitred.store.zookeeper import batch_news
from tests.waiting import eventually
from tests.zookeeper.house import House

pytestmark = [
    pytest.mark.parametrize("line", ["memory"], indirect=True),
    pytest.mark.parametrize("layout", ["seed"], indirect=True),
]


def watches(house: House) -> int:
    return len(house.ledger.session._watches)


async def test_a_batch_is_watched_once_however_many_others_are_looked_at_between(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_news, "MOST", 1)
    bids = [await house.batch() for _ in range(3)]
    before = watches(house)
    for bid in bids * 3:
        assert await house.store.batch(bid)
    assert watches(house) == before + len(bids)


async def test_a_batch_that_is_not_there_is_not_watched(house: House) -> None:
    before = watches(house)
    assert await house.store.batch("bid0000009999") is None
    assert watches(house) == before


async def test_a_watch_that_could_not_be_set_is_set_by_the_next_look(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    bid, heard = await house.batch(), list[str]()
    house.store.on_batch(heard.append)

    async def away(*_: object) -> bool:
        raise StoreUnavailable

    with monkeypatch.context() as broken:
        broken.setattr(house.ledger.session, "watch", away)
        with pytest.raises(StoreUnavailable):
            await house.store.batch(bid)
    await house.store.batch(bid)
    await house.store.hold("batch", bid, "ada", "")

    async def told() -> bool:
        return heard == [bid]

    await eventually(told, 20)


async def test_a_ledger_that_cannot_be_opened_leaves_no_session(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise StoreUnavailable

    ledger = type(house.ledger)(type(house.ledger.session)(house.ledger.session.hosts), "/elsewhere")
    monkeypatch.setattr(ledger, "_ensure", away)
    with pytest.raises(StoreUnavailable):
        await ledger.open()
    assert ledger.session.id == 0
