"""A queue on a line and on a tree, with short words for what tests do in it."""

import json
from collections.abc import Sequence
from typing import Any

from maitred.core.batch import BatchOrder
from maitred.core.job import Finish, Job, Order, Put, Start, Submitter
from maitred.core.settings import SECOND, Settings
from maitred.core.stages import INGEST
from maitred.store.ledgered import LedgeredStore, LedgeredStores
from maitred.store.zookeeper.records import JobEntry
from maitred.store.zookeeper.store import TreeStore
from tests.conftest import Clock

U1 = Submitter("user", "1")
NEEDS = [f"stage:{stage}" for stage in INGEST]


def settings_for(ledger: str, layout: str, **more: Any) -> Settings:
    return Settings(
        order="oldest-first",
        stages=INGEST,
        ledger=ledger,
        layout=layout,  # type: ignore[arg-type]
        **{"lease": 30 * SECOND, **more},
    )


def ingest(key: str, **more: Any) -> Order:
    """Give what the PUT of a job asks."""
    body = json.dumps({"key": key, "run": {"args": {"payload_url": f"file:///{key}"}}}).encode()
    label = json.dumps({"key": key, "local_id": None}).encode()
    return Order(key, more.pop("who", U1), NEEDS[0], body, **{"label": label, "delay": 0, **more})


class House:
    """One queue."""

    def __init__(self, stores: LedgeredStores, store: LedgeredStore, tree: TreeStore, clock: Clock) -> None:
        self.stores, self.store, self.tree, self.clock = stores, store, tree, clock
        self.line, self.ledger = tree._line, tree.ledger

    async def put(self, *keys: str, **more: Any) -> list[Put]:
        answers = await self.store.put([ingest(key, **more) for key in keys])
        assert all(isinstance(answer, Put) for answer in answers), answers
        return answers  # type: ignore[return-value]

    async def given(self, worker: str) -> Start:
        """Give the one start that a worker gets, by whichever way."""
        messages = [*(await self.store.take(worker)).starts, *(await self.store.park(worker, 0.1))]
        [start] = [message for message in messages if isinstance(message, Start)]
        return start

    async def job(self, key: str) -> Job:
        [view] = await self.store.read([key])
        assert view
        return view.job

    async def state(self, key: str) -> str:
        return (await self.job(key)).state(INGEST)

    async def entry(self, key: str) -> JobEntry:
        return await self.ledger.jobs.read((await self.job(key)).ledger)

    async def states(self, key: str) -> tuple[str, str]:
        """Give the state of a job in the line and in the tree."""
        return await self.state(key), (await self.entry(key)).state

    async def batch(
        self,
        *,
        external_id: str = "",
        sealed: bool = False,
        expanding: bool = False,
        who: Submitter = U1,
    ) -> str:
        sent = json.dumps({"submitter": {"type": "user", "id": "1"}}).encode()
        order = BatchOrder(external_id, who, "images", sent, expanding, sealed)
        return (await self.store.create_batch(order)).id

    async def work(
        self, worker: str = "w", slots: int = 4, needs: Sequence[str] = NEEDS, fail: Sequence[str] = ()
    ) -> list[str]:
        """Do all that can be done; `fail` names `key@stage` that fail. Give what was done, in order."""
        done: list[str] = []
        starts = (await self.store.join(worker, slots, needs)).starts
        while starts:
            results = []
            for start in starts:
                name = f"{start.id}@{start.need.removeprefix('stage:')}"
                done.append(name)
                code = "error" if name in fail else ""
                results.append(finish(start, code, "no route" if code else ""))
            starts = (await self.store.finish(worker, results)).starts
            if not starts:
                starts = [each for each in await self.store.park(worker, 0.05) if isinstance(each, Start)]
        await self.store.leave(worker)
        return done


def finish(start: Start, code: str = "", message: str = "", **more: Any) -> Finish:
    return Finish(start.lease, code, message, b'"%s"' % start.need.encode(), status=start.status, **more)
