"""The API keys and the audit log of the reference store: in this process's memory, and gone with it."""

import time
from collections import deque
from collections.abc import Sequence
from itertools import islice

from maitred.store.port import MOST_NOTES


class MemoryKeyring:
    """The API keys of one process, and who did what with them."""

    def __init__(self) -> None:
        self._records: dict[str, bytes] = {}
        self._notes: deque[tuple[str, bytes]] = deque(maxlen=MOST_NOTES)
        self._noted = 0

    async def all(self) -> dict[str, bytes]:
        """Give all records by id."""
        return dict(self._records)

    async def get(self, id: str) -> bytes | None:
        """Give one record."""
        return self._records.get(id)

    async def change(self, id: str, old: bytes | None, new: bytes | None) -> bool:
        """Put a new record in the place of an old one."""
        if self._records.get(id) != old:
            return False
        self._records.pop(id, None)
        if new is not None:
            self._records[id] = new
        return True

    async def note(self, notes: Sequence[bytes]) -> None:
        """Add to the audit log."""
        for note in notes:
            self._noted += 1
            self._notes.append((f"{time.time_ns() // 1_000_000}-{self._noted}", note))

    async def notes(self, before: str | None, limit: int) -> list[tuple[str, bytes]]:
        """Give the last notes, or those before one."""
        end = self._noted + 1 if before is None else int(before.partition("-")[2])
        earlier = (each for each in reversed(self._notes) if int(each[0].partition("-")[2]) < end)
        return list(islice(earlier, limit))

    async def noted(self) -> int:
        """Count the notes."""
        return len(self._notes)
