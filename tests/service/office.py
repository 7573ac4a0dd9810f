"""A queue with batches, a clerk, and somebody who does the jobs."""

from collections.abc import Callable
from typing import Any

from maitred.core.batch import Batch, BatchOrder, BatchState
from maitred.core.job import Finish, Start, Submitter
from maitred.core.settings import SECOND, Settings
from maitred.service.clerk import Clerk
from maitred.service.keyring import Keys
from maitred.service.messages import report_id
from maitred.service.order import allowed_by
from maitred.store.memory_keyring import MemoryKeyring
from maitred.store.port import Store
from maitred.wire import decode_body, decode_json, encode_json, parse_batch
from tests.conftest import Clock
from tests.service.post import postman
from tests.waiting import eventually

ADA = {"type": "user", "id": "ada"}
QUICK = Settings(backoff=1000, most_backoff=4000, private_addresses=True)
HANDLER = "grade"
CSV = "student,points\nada,1\nbob,2\ncy,3\n"

Doing = Callable[[dict[str, Any]], str]


def sent(**more: Any) -> dict[str, Any]:
    """Give the body of a batch."""
    return {"submitter": ADA, "run": {"handler": HANDLER}, **more}


class Office:
    """One queue, and what a test does in it."""

    def __init__(self, store: Store, clock: Clock, settings: Settings) -> None:
        self.store = store
        self.clock = clock
        self.settings = settings
        self.keys = Keys(MemoryKeyring())
        self.clerk = Clerk(store, "office", postman(self.keys), safety_net=0.01)

    async def submit(self, **more: Any) -> str:
        """Submit a batch; give its id."""
        value = sent(**more)
        body = parse_batch(value, allowed_by(self.settings))
        order = BatchOrder(
            body.external_id or "",
            Submitter(body.submitter.type, body.submitter.id),
            body.profile_name or "",
            encode_json(value),
            body.expanding,
            body.seal,
        )
        return (await self.store.create_batch(order)).id

    async def batch(self, id: str) -> Batch:
        found = await self.store.batch(id)
        assert found
        return found

    async def report(self, id: str) -> dict[str, Any]:
        """Give the last report."""
        report: dict[str, Any] = decode_json((await self.batch(id)).report)
        return report

    async def message_id(self, id: str, sequence: int = 1) -> str:
        """Give the webhook-id of a batch's n-th report."""
        return report_id(self.store.queue, await self.batch(id), sequence)

    async def completed(self, id: str) -> None:
        """Wait until a batch has completed."""

        async def look() -> bool:
            return (await self.batch(id)).state is BatchState.COMPLETED

        await eventually(look)

    async def bodies(self, id: str) -> list[dict[str, Any]]:
        """Give what was put in for a batch, in order."""
        page = await self.store.batch_rows(id, 0, 100_000)
        views = await self.store.read([row.id for row in page.rows])
        return [decode_body(view.job.body) for view in views if view]

    async def do_jobs(self, doing: Doing = lambda _: "") -> list[str]:
        """Do all jobs that wait; `doing` gives the message of a failure. Give the keys in order."""
        keys: list[str] = []
        starts = (await self.store.join("w", 8, [f"handler:{HANDLER}"])).starts
        while starts:
            starts = await self._do(starts, doing, keys)
        await self.store.leave("w")
        # What came in meanwhile was handed over by the inbox, which nobody reads here.
        if missed := (await self.store.renew("w", [])).starts:
            await self._do(missed, doing, keys)
        return keys

    async def _do(self, starts: list[Start], doing: Doing, keys: list[str]) -> list[Start]:
        keys += [decode_body(start.body)["key"] for start in starts]
        return (await self.store.finish("w", [self._finish(start, doing) for start in starts])).starts

    @staticmethod
    def _finish(start: Start, doing: Doing) -> Finish:
        message = doing(decode_body(start.body))
        return Finish(start.lease, "error" if message else "", message)

    def later(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.now += round(seconds * SECOND)


async def opened(store: Store, clock: Clock, settings: Settings) -> Office:
    """Open a queue with these settings."""
    await store.configure(settings)
    return Office(store, clock, settings)
