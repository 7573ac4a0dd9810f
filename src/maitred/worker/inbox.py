"""Reads what the store pushes: what to start, to stop, to leave less time, and what was typed for it."""

from maitred.core.job import Lower, Message, Start, Stop, Typed
from maitred.store.port import Store
from maitred.worker.in_hand import InHand
from maitred.worker.reach import Reach
from maitred.worker.timekeeper import Timekeeper

PARK = 5.0


class Inbox:
    """Parks on the worker's inbox, and passes on what comes."""

    def __init__(
        self, store: Store, worker: str, reach: Reach, in_hand: InHand, timekeeper: Timekeeper
    ) -> None:
        self._store, self._worker, self._reach = store, worker, reach
        self._in_hand, self._timekeeper = in_hand, timekeeper

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            messages = await self._reach.patiently(lambda: self._store.park(self._worker, PARK))
            self._reach.note_taking()
            for message in messages:
                self._heed(message)

    def _heed(self, message: Message) -> None:
        if isinstance(message, Start):
            self._in_hand.receive(message)
        elif isinstance(message, Stop):
            self._in_hand.stop(message)
        elif isinstance(message, Lower):
            self._in_hand.lower(message)
        elif isinstance(message, Typed):
            self._in_hand.type_in(message)
        else:
            self._timekeeper.wake()
