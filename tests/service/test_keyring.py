"""The keys: the local one is always there, secrets are replaced in turn, and no change is lost."""

import asyncio
from base64 import b64decode

import pytest

from maitred.core.settings import DAY, SECOND
from maitred.errors import StoreError, UnknownKey
from maitred.service.keyring import LOCAL, MOST_SECRETS, Keys
from maitred.store.memory import MemoryStores
from maitred.store.memory_keyring import MemoryKeyring
from maitred.store.port import Stores


class Calendar:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def calendar() -> Calendar:
    return Calendar()


@pytest.fixture
def keys(calendar: Calendar) -> Keys:
    return Keys(MemoryKeyring(), calendar)


async def test_records_are_made_changed_and_removed_in_one_step(stores: Stores, queue_name: str) -> None:
    ring, id = stores.keyring, queue_name
    assert not await ring.change(id, b"other", b"new")
    assert await ring.change(id, None, b"one\0\xff")
    assert not await ring.change(id, None, b"two")
    assert (await ring.all())[id] == await ring.get(id) == b"one\0\xff"
    assert await ring.change(id, b"one\0\xff", b"two")
    assert not await ring.change(id, b"one\0\xff", None)
    assert await ring.change(id, b"two", None)
    assert id not in await ring.all()
    assert await ring.get(id) is None


async def test_the_local_key_is_always_there_and_is_made_once(stores: Stores) -> None:
    found = await asyncio.gather(*(Keys(stores.keyring).signing(LOCAL) for _ in range(8)))
    assert len({tuple(secrets) for secrets in found}) == 1
    [secret] = found[0]
    assert len(b64decode(secret.removeprefix("whsec_"))) == 32
    [key] = [key for key in await Keys(stores.keyring).all() if key.id == LOCAL]
    assert (key.role, key.revoked, key.queues, key.submitters) == ("admin", False, (), ())


async def test_a_secret_that_was_replaced_signs_until_its_time_is_over(
    keys: Keys, calendar: Calendar
) -> None:
    [old] = await keys.signing(LOCAL)
    new = (await keys.rotate(LOCAL)).secrets[0].secret
    assert await keys.signing(LOCAL) == [new, old]
    calendar.now += DAY / SECOND
    assert await keys.signing(LOCAL) == [new]
    newest = (await keys.rotate(LOCAL, keep=0)).secrets[0].secret
    assert await keys.signing(LOCAL) == [newest]


async def test_a_secret_never_gets_more_time_by_another_change(keys: Keys, calendar: Calendar) -> None:
    [first] = await keys.signing(LOCAL)
    await keys.rotate(LOCAL, keep=10 * SECOND)
    await keys.rotate(LOCAL)
    assert first in await keys.signing(LOCAL)
    calendar.now += 10
    assert first not in await keys.signing(LOCAL)


async def test_there_are_never_more_secrets_than_headers_should_have(keys: Keys) -> None:
    made = [(await keys.rotate(LOCAL)).secrets[0].secret for _ in range(10)]
    assert await keys.signing(LOCAL) == made[: -MOST_SECRETS - 1 : -1]


async def test_secrets_that_are_replaced_at_once_are_all_replaced(stores: Stores) -> None:
    keys = Keys(stores.keyring)
    made = await asyncio.gather(*(keys.rotate(LOCAL) for _ in range(3)))
    assert {key.secrets[0].secret for key in made} <= set(await keys.signing(LOCAL))


async def test_a_key_that_nobody_made_is_unknown(keys: Keys) -> None:
    with pytest.raises(UnknownKey, match="'nobody'"):
        await keys.rotate("nobody")
    assert not await keys.any_made()


async def test_a_record_of_another_version_is_in_nobodys_way(keys: Keys) -> None:
    made = await keys.create("viewer")
    assert await keys._keyring.change("newer", None, b'{"id":"newer","role":"inspector"}')
    assert [key.id for key in await keys.all()] == [made.record.id, LOCAL]
    assert await keys.signing(made.record.id)
    assert (await keys.revoke(made.record.id)).revoked
    with pytest.raises(StoreError, match="another version"):
        await keys.signing("newer")


async def test_a_key_does_not_tell_its_secrets_when_it_is_printed() -> None:
    [key] = await Keys(MemoryStores().keyring).all()
    assert key.secrets[0].secret not in repr(key)


async def test_the_audit_log_is_read_from_its_end(stores: Stores, queue_name: str) -> None:
    ring = stores.keyring
    await ring.note([f"{queue_name} {number}".encode() for number in range(3)])
    await ring.note([b"last\0\xff"])
    newest = await ring.notes(None, 2)
    older = await ring.notes(newest[-1][0], 2)
    assert [note for _, note in newest + older] == [
        b"last\0\xff",
        *(f"{queue_name} {number}".encode() for number in (2, 1, 0)),
    ]
    assert all(id.partition("-")[0].isdecimal() for id, _ in newest)
    assert await ring.noted() >= 4
