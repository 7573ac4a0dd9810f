"""Whether private addresses are allowed: as the file says, or else as long as there are no keys."""

import pytest

from maitred import config
from maitred.cli.settling import settle
from maitred.store.memory import MemoryStores


@pytest.mark.parametrize(
    ("said", "key", "allowed"),
    [
        (None, False, True),
        (None, True, False),
        (True, True, True),
        (True, False, True),
        (False, False, False),
    ],
)
async def test_a_house_that_opens_decides_it(said: bool | None, key: bool, allowed: bool) -> None:
    stores = MemoryStores()
    if key:
        await stores.keyring.change("k1", None, b"{}")
    table = {} if said is None else {"private_addresses": said}
    written = config.Config.model_validate({"queues": {"default": table}})
    await settle(stores, written)
    assert (await stores.queue("default").status()).settings.private_addresses is allowed


async def test_the_local_key_is_none_that_was_made() -> None:
    stores = MemoryStores()
    for _ in range(2):
        await settle(stores, config.Config())
        assert (await stores.queue("default").status()).settings.private_addresses
        await stores.keyring.change("local", None, b"{}")
