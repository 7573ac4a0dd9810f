"""A bell: it wakes whoever works for a queue shortly after something happened there that may be work."""

import asyncio
from collections.abc import Callable, Sequence

from maitred.core.events import Entry, Event

SHORTLY = 0.05


class Bell:
    """Listens to a queue's news for events of some kinds, or all; rings once for all that come meanwhile."""

    def __init__(self, wake: Callable[[], None], *kinds: type[Event]) -> None:
        self._wake, self._kinds = wake, kinds
        self._pulled = False

    def hear(self, entries: Sequence[Entry]) -> None:
        """Hear what happened in the queue."""
        kinds = self._kinds
        if not kinds or any(isinstance(event, kinds) for entry in entries for event in entry.events):
            self.missed()

    def missed(self) -> None:
        """Hear that something was missed: there may be work."""
        if not self._pulled:
            self._pulled = True
            asyncio.get_running_loop().call_later(SHORTLY, self._ring)

    def _ring(self) -> None:
        self._pulled = False
        self._wake()
