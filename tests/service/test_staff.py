"""The staff of a server: whoever breaks off has a successor."""

import asyncio

from maitred.core.events import BatchChanged
from maitred.core.settings import Settings
from maitred.service.per_queue import end
from maitred.service.rounds import Rounds
from maitred.service.staff import Staff
from maitred.store.memory import MemoryStores
from maitred.store.port import Store
from tests.waiting import eventually


class Clumsy(Rounds):
    """Falls in its first round if it is the first one."""

    def __init__(self, store: Store, number: int) -> None:
        super().__init__(store.queue)
        self._number, self.at_work = number, False

    async def _begin(self) -> bool:
        if self._number == 0:
            raise KeyError("a bug")
        self.at_work = True
        return False


async def test_whoever_breaks_off_is_replaced_when_there_is_work() -> None:
    stores = MemoryStores()
    await stores.queue("q").configure(Settings())
    hired: list[Clumsy] = []

    def hire(store: Store) -> Clumsy:
        hired.append(Clumsy(store, len(hired)))
        return hired[-1]

    staff = Staff(stores, hire, BatchChanged)
    running = asyncio.create_task(staff.run())

    async def works() -> bool:
        staff.wake("q")
        return bool(hired) and hired[-1].at_work

    try:
        await eventually(works)
    finally:
        await end([running])
    assert len(hired) == 2
