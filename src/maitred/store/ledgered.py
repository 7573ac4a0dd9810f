"""Stores whose queues may keep their ledger elsewhere: each queue's settings say so.

A queue without a ledger of its own costs nothing: its verbs go straight to the line. What talks to ZooKeeper
is loaded, and connected, only for a queue that names it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from maitred.core.settings import SECOND, Settings
from maitred.store.passing_on import PassingOn
from maitred.store.port import CallListener, Clock, Keyring, ScriptTime, Status, Store, Stores

if TYPE_CHECKING:
    from maitred.store.zookeeper.reconciling import Tally
    from maitred.store.zookeeper.store import TreeStore

# A node of the tree holds less than a body may have elsewhere.
LARGEST_BODY = 512 * 1024
LONGEST_SESSION = 10.0


class LedgeredStore(PassingOn):
    """One queue, with its ledger in the line or in a tree."""

    def __init__(
        self,
        line: Store,
        clock: Clock | None = None,
        known: "Callable[[LedgeredStore], None]" = lambda _: None,
    ) -> None:
        """`known` hears of it when the queue turns out to be there."""
        self.queue, self._line = line.queue, line
        self._clock, self._known = clock, known
        self._settings: Settings | None = None
        self._tree: TreeStore | None = None
        self._opening = asyncio.Lock()
        self._listeners: list[Callable[[str], None]] = []

    async def tree(self) -> "TreeStore | None":
        """Give the queue on its tree, connected; None if its ledger is in the line."""
        if self._settings is None:
            async with self._opening:
                if self._settings is None:
                    await self._take_over((await self._line.status()).settings)
        return self._tree

    async def _target(self) -> Store:
        if self._settings is not None and self._tree is None:
            return self._line
        return await self.tree() or self._line

    async def configure(self, settings: Settings) -> None:
        """Make the queue, or give it new settings; its ledger is opened first."""
        if settings.ledger:
            settings = replace(settings, max_body=min(settings.max_body, LARGEST_BODY))
        await self._line.configure(settings)
        await self._use(settings)

    async def status(self) -> Status:
        """Show the queue; whoever looks learns of a change of its ledger."""
        status = await self._line.status()
        await self._use(status.settings)
        return status

    async def settings(self) -> Settings:
        """Show the queue's settings, and learn of a change of its ledger."""
        settings = await self._line.settings()
        await self._use(settings)
        return settings

    async def reconcile(self) -> "Tally | None":
        """Bring the line after the tree; None if there is none."""
        tree = await self.tree()
        return await tree.reconcile() if tree else None

    async def follow(self) -> "AsyncIterator[Tally]":
        """Bring the line after the tree whenever that moves; nothing if there is none."""
        tree = await self.tree()
        if tree:
            async for tally in tree.follow():
                yield tally

    async def tell(self, limit: int) -> int:
        """Tell the tree what the line decided alone; give how much that was."""
        tree = await self.tree()
        return await tree.tell(limit) if tree else 0

    async def sweep_tree(self) -> None:
        """Forget what is old in the tree."""
        tree = await self.tree()
        if tree:
            await tree.sweep_tree()

    def on_batch(self, listener: Callable[[str], None]) -> None:
        """Call this when the state of a batch that was looked at changes in the tree."""
        self._listeners.append(listener)

    async def close(self) -> None:
        """End the session with the tree, and with it its locks."""
        tree, self._tree, self._settings = self._tree, None, None
        if tree:
            await tree.close()

    async def _use(self, settings: Settings) -> None:
        """Open the ledger that the settings name, unless it is the one that is open."""
        if settings != self._settings:
            async with self._opening:
                await self._take_over(settings)

    async def _take_over(self, settings: Settings) -> None:
        old = self._settings
        if old is None or _where(settings) != _where(old):
            tree = await self._open(settings) if settings.ledger else None
            before, self._tree = self._tree, tree
            if before:
                await before.close()
        elif self._tree:
            self._tree.bridge.settings = settings
        self._settings = settings
        self._known(self)

    async def _open(self, settings: Settings) -> "TreeStore":
        from maitred.store.zookeeper.ledger import Ledger  # noqa: PLC0415 - see the docstring
        from maitred.store.zookeeper.store import TreeStore  # noqa: PLC0415

        ledger = Ledger.at(
            settings.ledger,
            queue=self.queue,
            layout=settings.layout,
            stages=settings.stages,
            timeout=min(LONGEST_SESSION, settings.lease / SECOND * 2 / 3),
            clock=self._clock,
        )
        await ledger.open()
        tree = TreeStore(self._line, ledger, settings)
        tree.batch_news.listeners = self._listeners
        return tree


def _where(settings: Settings) -> tuple[object, ...]:
    """Give what of the settings decides where the ledger is, and how it is written."""
    return settings.ledger, settings.layout, settings.stages


class LedgeredStores:
    """All queues of one place, each with its ledger."""

    def __init__(self, lines: Stores, clock: Clock | None = None) -> None:
        self.lines = lines
        self._clock = clock
        self._queues: WeakValueDictionary[str, LedgeredStore] = WeakValueDictionary()
        # Those that are there are kept; any other name is only somebody's question.
        self._kept: dict[str, LedgeredStore] = {}

    def queue(self, name: str) -> LedgeredStore:
        """Give the store of one queue, the same to all: its session and its locks are this process's."""
        store = self._queues.get(name)
        if store is None:
            store = self._queues[name] = LedgeredStore(self.lines.queue(name), self._clock, self._keep)
        return store

    async def names(self) -> list[str]:
        """Name the queues that were configured."""
        return await self.lines.names()

    @property
    def keyring(self) -> Keyring:
        """The API keys, kept with the lines."""
        return self.lines.keyring

    def _keep(self, store: LedgeredStore) -> None:
        self._kept[store.queue] = store

    async def ping(self) -> None:
        """Raise StoreUnavailable unless the line's store answers."""
        await self.lines.ping()

    def on_call(self, listener: CallListener) -> None:
        """Tell of each call of the lines' store."""
        self.lines.on_call(listener)

    async def script_time(self) -> ScriptTime | None:
        """Tell how busy the lines' server is with scripts."""
        return await self.lines.script_time()

    async def close(self) -> None:
        """Give back sessions and connections."""
        for store in list(self._queues.values()):
            await store.close()
        await self.lines.close()
