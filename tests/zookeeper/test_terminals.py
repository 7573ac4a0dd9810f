"""A session on a queue whose ledger is a tree: the Floor admits it as on any other."""

from dataclasses import replace

import pytest

from maitred.core.job import Band
from maitred.core.settings import Settings
from maitred.core.stages import DEFAULT
from maitred.store.ledgered import LedgeredStores
from tests.closing import closing
from tests.conftest import Servers
from tests.conftest import connect as connect_line
from tests.sessions.parlour import Parlour


@pytest.fixture
def clock() -> None:
    """Override: the stores are on their own clock."""


async def test_a_session_is_worked_in_and_ends_and_line_and_tree_agree(
    servers: Servers, line: str, settings: Settings, queue_name: str
) -> None:
    async with closing(LedgeredStores(connect_line(servers, line, None))) as stores:
        parlour = Parlour(stores, queue_name)
        parlour.settings = replace(settings, stages=DEFAULT)
        await parlour.set()
        async with parlour.server() as parlour.address, parlour.worker(), parlour.session() as guest:
            await guest.types("echo $((6 * 7)); exit 3\r")
            await guest.until("42")
            assert (await guest.status("ended"))["exit"] == 3
            id = (await guest.status("started"))["id"]
            job = await parlour.ended(id)
            assert job.band is Band.INTERACTIVE
        assert await parlour.store.check() == []
