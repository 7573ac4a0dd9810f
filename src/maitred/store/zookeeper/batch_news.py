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
        self._watched: dict[str, None] = {}

    async def look_at(self, id: str) -> None:
        """Hear of the next change of a batch's state; of many that are looked at, the latest ones."""
        known = id in self._watched
        self._watched.pop(id, None)
        self._watched[id] = None
        if not known:
            await self.bridge.session.watch(self.bridge.tree.batch(id, "status"), partial(self._changed, id))
        while len(self._watched) > MOST:
            del self._watched[next(iter(self._watched))]

    def _changed(self, id: str) -> None:
        self._watched.pop(id, None)
        for listener in self.listeners:
            listener(id)

    def added_to(self, entries: Sequence[Entry]) -> list[Entry]:
        """Say of every batch that is looked at that its jobs may have moved, where the line has news."""
        if not entries or not self._watched:
            return list(entries)
        *first, last = entries
        return [*first, last._replace(events=[*last.events, *map(BatchChanged, self._watched)])]
