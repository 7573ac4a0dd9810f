"""A copy of the data directory is a backup: a house that is opened on it is sound, and goes on from there."""

import shutil
from pathlib import Path

from maitred.core.job import Order, Submitter
from maitred.core.settings import SECOND, Settings
from maitred.store.valkey.embedded import Embedded
from maitred.store.valkey.store import ValkeyStores
from tests.closing import closing

ADA = Submitter("user", "ada")


async def test_what_waited_when_the_copy_was_made_waits_in_it(tmp_path: Path) -> None:
    with Embedded(tmp_path / "data") as embedded:
        async with closing(ValkeyStores(embedded.url)) as stores:
            store = stores.queue("default")
            await store.configure(Settings())
            await store.put([Order("kept", ADA, "command", b"{}", delay=600 * SECOND)])
    shutil.copytree(tmp_path / "data", tmp_path / "backup")
    with Embedded(tmp_path / "data") as lost:
        async with closing(ValkeyStores(lost.url)) as later:
            await later.queue("default").remove("kept")
    with Embedded(tmp_path / "backup") as embedded:
        async with closing(ValkeyStores(embedded.url)) as stores:
            store = stores.queue("default")
            assert [view.job.id for view in (await store.line(None, 10)).views] == ["kept"]
            assert await store.check() == []
