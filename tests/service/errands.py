"""A queue whose submitters are told, a courier, and a worker that does as it is told."""

from typing import Any

from maitred.core.job import Finish, Start
from maitred.core.settings import MINUTE, SECOND, Settings
from maitred.service.courier import Courier
from maitred.service.desk import Desk
from maitred.service.document import Document
from maitred.service.keyring import Keys
from maitred.service.receivers import Receivers
from maitred.store.memory_keyring import MemoryKeyring
from maitred.store.port import Stores
from maitred.wire import decode_json
from tests.conftest import Clock
from tests.service.address import Address
from tests.service.post import postman

HANDLER = "grade"
QUICK = Settings(backoff=1000, most_backoff=4000, lease=60 * MINUTE, private_addresses=True)


class Errands:
    """One queue, its courier, and what a test does in it."""

    def __init__(self, stores: Stores, queue: str, clock: Clock, settings: Settings = QUICK) -> None:
        self.queue, self.clock, self.settings = queue, clock, settings
        self.store = stores.queue(queue)
        self.desk = Desk(stores)
        self.keys = Keys(MemoryKeyring())
        self.postman = postman(self.keys)
        self.running: dict[str, Start] = {}

    def courier(self, *, patience: float | None = None, receivers: Receivers | None = None) -> Courier:
        """Give a courier of this queue."""
        sender = self.postman if patience is None else postman(self.keys, patience=patience)
        return Courier(self.store, "courier", sender, receivers or Receivers(), safety_net=0.01)

    async def submits(self, key: str, url: str | None, **more: Any) -> str:
        """Submit a job; give its id."""
        body = {
            "key": key,
            "submitter": {"type": "user", "id": "ada"},
            "run": {"handler": HANDLER, "args": {"secret": "exam"}},
            "response_url": url,
            **more,
        }
        return (await self.desk.submit(self.queue, body)).id

    async def works(self, slots: int = 1) -> None:
        """Let a worker in; it starts what there is."""
        self._note((await self.store.join("w", slots, [f"handler:{HANDLER}"])).starts)

    async def ends(self, id: str, code: str = "", result: bytes = b'{"points":7}', **more: Any) -> None:
        """End a run; the worker starts what is next."""
        await self.hears()
        done = Finish(
            self.running.pop(id).lease, code, "no good" if code else "", b"" if code else result, **more
        )
        self._note((await self.store.finish("w", [done])).starts)

    async def hears(self) -> None:
        """Let the worker read its inbox."""
        found = await self.store.park("w", 0.001)
        self._note([message for message in found if isinstance(message, Start)])

    def _note(self, starts: list[Start]) -> None:
        self.running.update({start.id: start for start in starts})

    def later(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.now += round(seconds * SECOND)

    async def log(self, id: str) -> list[Document]:
        """Give the tries at a job's callbacks."""
        items: list[Document] = (await self.desk.deliveries(self.queue, id))["items"]
        return items


def told(address: Address) -> list[dict[str, Any]]:
    """Give what an address was told, in order."""
    return [decode_json(request.body) for request in address.requests]
