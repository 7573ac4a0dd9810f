"""A clerk may die at any call to the store: another takes over, and nothing is doubled or lost."""

from typing import Any

import pytest

from maitred.core.batch import BatchState
from maitred.service import clerk
from maitred.service.clerk import Clerk
from maitred.store.memory import MemoryStores
from maitred.store.port import Store
from tests.conftest import Clock
from tests.service.address import Reply, listening
from tests.service.office import QUICK, Office
from tests.service.post import postman

ROWS = 300
TABLE = "n\n" + "".join(f"{n}\n" for n in range(ROWS))


class Killed(BaseException):
    """The process is gone: nothing that it would have done afterwards is done."""


class Mortal:
    """A store that kills whoever makes the n-th call: before the call is carried out, or after it."""

    def __init__(self, store: Store, calls: int, *, after: bool) -> None:
        self._store = store
        self.left = calls
        self._after = after

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._store, name)
        if not callable(verb):
            return verb

        async def call(*args: Any, **named: Any) -> Any:
            self.left -= 1
            if self.left < 0 or (self.left == 0 and not self._after):
                raise Killed
            answer = await verb(*args, **named)
            if self.left == 0:
                raise Killed
            return answer

        return call


async def works_until_killed(office: Office, calls: int, *, after: bool) -> bool:
    """Let a clerk work that dies at its n-th call, and another one take over; tell whether it died."""
    store = Mortal(office.store, calls, after=after)
    killed = False
    try:
        await Clerk(store, "mortal", postman(), safety_net=0.01).work_off()
    except Killed:
        killed = True
    office.later(office.settings.lease / 1_000_000 + 1)
    await office.clerk.work_off()
    return killed


@pytest.mark.parametrize("after", [False, True], ids=["before-the-call", "after-the-call"])
async def test_a_clerk_that_dies_at_any_call_leaves_a_batch_that_ends_well(
    clock: Clock, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clerk, "ROWS_PER_CALL", 100)
    async with listening() as address:
        url = address.at("/r", Reply(200))
        calls, killed = 0, True
        while killed:
            calls += 1
            office = await opened(clock)
            id = await office.submit(payload=TABLE, response_url=url)
            address.requests.clear()

            killed = await works_until_killed(office, calls, after=after)
            done = await office.do_jobs(lambda body: "no" if body["key"].endswith("/7") else "")
            assert sorted(done) == sorted(f"{id}/{n}" for n in range(1, ROWS + 1)), calls

            killed = await works_until_killed(office, calls, after=after) or killed
            batch, report = await office.batch(id), await office.report(id)
            assert (batch.state, batch.sequence, batch.fault) == (BatchState.FAILED, 1, ""), calls
            assert len(report["completed"]) == ROWS - 1
            assert [row["key"] for row in report["failed"]] == [f"{id}/7"]
            await office.store.retry(report["failed"][0]["id"])
            await office.do_jobs()
            await office.store.update_batch(id)

            killed = await works_until_killed(office, calls, after=after) or killed
            batch, report = await office.batch(id), await office.report(id)
            assert (batch.state, batch.sequence, batch.unsent) == (BatchState.COMPLETED, 2, False), calls
            assert [row["key"] for row in report["completed"]] == [f"{id}/7"], "only what changed is told"
            # One that dies between sending and noting it cannot know better; the id tells the receiver.
            told = {each.headers["webhook-id"] for each in address.requests}
            assert told == {await office.message_id(id, sequence) for sequence in (1, 2)}
            assert len(address.requests) <= 4
        assert calls > 8, "there were so many calls to die at"


async def opened(clock: Clock) -> Office:
    store = MemoryStores(clock=clock).queue("q")
    await store.configure(QUICK)
    return Office(store, clock, QUICK)
