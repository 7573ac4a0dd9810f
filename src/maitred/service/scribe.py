"""The scribe: it keeps line and tree of a queue together, where the ledger is a tree.

What the line decided alone it writes to the tree; what moves in the tree it brings into the line, all of it
at its start and then on a watch; what is old it forgets. Any number may run at once, and all of this may be
done twice: a scribe may die at any time, and another goes on.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from maitred.errors import MaitredError
from maitred.service.per_queue import begin, end, for_each
from maitred.store.ledgered import LedgeredStore
from maitred.store.port import Stores

AT_ONCE = 200
TELL_EVERY = 0.5
SWEEP_EVERY = 60.0

_log = structlog.get_logger()


class Scribe:
    """One scribe of one queue; `run` it in a task, and cancel that to stop it."""

    def __init__(self, store: LedgeredStore) -> None:
        self._store = store
        self._trouble = ""

    async def run(self) -> None:
        """Work until cancelled. What does not answer is asked again."""
        duties = (
            self._again(self._tell, TELL_EVERY),
            self._again(self._follow, TELL_EVERY),
            self._again(self._store.sweep_tree, SWEEP_EVERY),
        )
        await asyncio.gather(*duties)

    async def _again(self, duty: Callable[[], Awaitable[object]], pause: float) -> None:
        while True:
            try:
                await duty()
            except MaitredError as error:
                if self._trouble != str(error):
                    _log.warning(
                        "line and ledger cannot be compared", queue=self._store.queue, error=str(error)
                    )
                self._trouble = str(error)
            else:
                self._trouble = ""
            await asyncio.sleep(pause)

    async def _tell(self) -> None:
        while await self._store.tell(AT_ONCE) == AT_ONCE:
            pass

    async def _follow(self) -> None:
        async for tally in self._store.follow():
            if tally.made or tally.changed or tally.removed or tally.holds:
                _log.info(
                    "the line was brought after its ledger",
                    queue=self._store.queue,
                    made=len(tally.made),
                    changed=len(tally.changed),
                    removed=len(tally.removed),
                    holds=len(tally.holds),
                )


class Scribes:
    """The scribes of a server: one for each queue whose ledger is a tree, started when it is first seen."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Work for all queues until cancelled."""
        try:
            await for_each(self._stores, self._see_to)
        finally:
            await end(self._tasks.values())

    async def _see_to(self, name: str) -> None:
        store = self._stores.queue(name)
        if name in self._tasks or not isinstance(store, LedgeredStore):
            return
        try:
            if not await store.tree():
                return
        except MaitredError as error:
            _log.warning("a ledger does not answer", queue=name, error=str(error))
            return
        self._tasks[name] = begin("scribe", Scribe(store).run())
