"""News of batches: a watch on the state of each batch that somebody looks at, and who wants to hear of it.

The counts of a batch move with its jobs, of which the line tells; its state moves in the tree alone.
"""

from collections.abc import Callable, Sequence
from functools import partial

from maitred.core.events import BatchChanged, Entry
from maitred.store.zookeeper.bridge import Bridge

MOST = 256


class BatchNews:
    """Whose batches are looked at in this process."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self.listeners: list[Callable[[str], None]] = []
        # Those that were looked at last, and those of which the tree will tell.
        self._watched: dict[str, None] = {}
        self._told_of: set[str] = set()

    async def look_at(self, id: str) -> None:
        """Hear of the next change of a batch's state; of its counts, if it is among the last looked at."""
        if id not in self._told_of and not await self._be_told_of(id):
            return
        self._watched.pop(id, None)
        self._watched[id] = None
        while len(self._watched) > MOST:
            del self._watched[next(iter(self._watched))]

    async def _be_told_of(self, id: str) -> bool:
        """Watch the state of a batch, once for all who look at it; tell whether it is there."""
        self._told_of.add(id)
        there = False
        try:
            path = self.bridge.tree.batch(id, "status")
            there = await self.bridge.session.watch(path, partial(self._changed, id))
        finally:
            if not there:
                self._told_of.discard(id)
        return there

    def _changed(self, id: str) -> None:
        self._told_of.discard(id)
        self._watched.pop(id, None)
        for listener in self.listeners:
            listener(id)

    def added_to(self, entries: Sequence[Entry]) -> list[Entry]:
        """Say of every batch that is looked at that its jobs may have moved, where the line has news."""
        if not entries or not self._watched:
            return list(entries)
        *first, last = entries
        return [*first, last._replace(events=[*last.events, *map(BatchChanged, self._watched)])]
