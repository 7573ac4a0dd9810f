"""The scribe: it keeps line and tree of a queue together, where the ledger is a tree.

What the line decided alone it writes to the tree; what moves in the tree it brings into the line, all of it
at its start and then on a watch; what is old it forgets. Any number may run at once, and all of this may be
done twice: a scribe may die at any time, and another goes on.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import structlog

from maitred.core.events import Changed, Deleted, Ended
from maitred.errors import MaitredError
from maitred.service.bell import Bell
from maitred.service.foresights import Foresights
from maitred.service.per_queue import begin, end, for_each
from maitred.store.ledgered import LedgeredStore
from maitred.store.port import Stores

AT_ONCE = 200
SAFETY_NET = 1.0
SWEEP_EVERY = 60.0

_log = structlog.get_logger()


class Scribe:
    """One scribe of one queue; `run` it in a task, and cancel that to stop it.

    `wake` it when the line may have decided something; it looks every second anyway.
    """

    def __init__(self, store: LedgeredStore) -> None:
        self._store = store
        self._news = asyncio.Event()

    def wake(self) -> None:
        """Tell the tree now what it has not heard."""
        self._news.set()

    async def run(self) -> None:
        """Work until cancelled. What does not answer is asked again."""
        async with asyncio.TaskGroup() as duties:
            duties.create_task(self._again(self._tell, 0))
            duties.create_task(self._again(self._follow, SAFETY_NET))
            duties.create_task(self._again(self._store.sweep_tree, SWEEP_EVERY))

    async def _again(self, duty: Callable[[], Awaitable[object]], pause: float) -> None:
        """Do a duty again and again; what goes wrong is told once, not each time."""
        trouble = ""
        while True:
            rest = pause
            try:
                await duty()
            except Exception as error:  # noqa: BLE001 - whatever it is, the other duties go on, and this one again
                if trouble != str(error):
                    bug = None if isinstance(error, MaitredError) else error
                    about = {"queue": self._store.queue, "error": str(error)}
                    _log.warning("line and ledger cannot be compared", **about, exc_info=bug)
                trouble, rest = str(error), max(pause, SAFETY_NET)
            else:
                trouble = ""
            await asyncio.sleep(rest)

    async def _tell(self) -> None:
        """Tell the tree what it has not heard, and wait for more."""
        self._news.clear()
        while await self._store.tell(AT_ONCE) == AT_ONCE:
            pass
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SAFETY_NET):
                await self._news.wait()

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
    """The scribes of a server: one for each queue whose ledger is a tree, started when it is first seen.

    Where there are `foresights`, a scribe hears of it when something happened in its line.
    """

    def __init__(self, stores: Stores, foresights: Foresights | None = None) -> None:
        self._stores, self._foresights = stores, foresights
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
        scribe = Scribe(store)
        self._tasks[name] = begin("scribe", scribe.run())
        foresight = self._foresights.of(name) if self._foresights else None
        if foresight is not None:
            foresight.listeners.append(Bell(scribe.wake, Ended, Changed, Deleted))
