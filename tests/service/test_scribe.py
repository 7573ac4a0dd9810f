"""The scribe is patient: what does not answer is asked again after a pause, and told of once."""

import asyncio

from structlog.testing import capture_logs

from maitred.errors import StoreUnavailable
from maitred.service.scribe import Scribe
from maitred.store.ledgered import LedgeredStore
from maitred.store.memory import MemoryStores


class Away(LedgeredStore):
    """A store that refuses at once, as one that is not listened on does."""

    asked = 0

    async def tell(self, limit: int) -> int:  # noqa: ARG002 - it refuses all
        self.asked += 1
        raise StoreUnavailable


async def test_a_store_that_refuses_at_once_is_not_asked_all_the_time() -> None:
    store = Away(MemoryStores().queue("q"))
    with capture_logs() as logs:
        task = asyncio.create_task(Scribe(store).run())
        for _ in range(100):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert store.asked == 1
    assert [log["error"] for log in logs].count(str(StoreUnavailable())) == 1
