"""Where a watcher of all queues is: how much of each queue's events it was told, written into one short id.

Of each queue all was told up to a `base`, a time that lies a while back. Queues of which more was told since
then are `ahead`, each with its exact position, by a mark of its name. So an id is as long as there are queues
in which something happened lately, and not as there are queues; it names no server and holds on all of them.
"""

import re
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple, Self

from maitred.service.recent import EntryId

# All events of an entry.
WHOLE = 1 << 53
# So many queues are ahead at most: an id is at most about 6 kB. Of those left out, which had news longest
# ago, a reader that comes back is told again what happened after the base, and misses nothing.
MOST_AHEAD = 256

_HEX = "[0-9a-f]"
_AHEAD = re.compile(rf"([\w-]{{6}})({_HEX}{{1,12}})-({_HEX}{{1,13}})(?:-({_HEX}{{1,8}}))?", re.ASCII)
_BEARINGS = re.compile(rf"{_HEX}{{1,12}}(\.[\w-]{{9,48}})*", re.ASCII)


class Position(NamedTuple):
    """How much was told of a queue: all before this entry, and so many events of it."""

    entry: EntryId
    told: int = WHOLE


class Bearings(NamedTuple):
    """All was told up to `base`, in milliseconds of the store's time, and more of those `ahead`, by mark."""

    base: int
    ahead: dict[str, Position]

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Read the id of an event; None if it is none."""
        if not _BEARINGS.fullmatch(text):
            return None
        base, *others = text.split(".")
        since = int(base, 16)
        found = [_AHEAD.fullmatch(each) for each in others]
        ahead = {}
        for each in found:
            if each is None:
                return None
            mark, after, number, told = each.groups()
            entry = (since + int(after, 16), int(number, 16))
            ahead[mark] = Position(entry, int(told, 16) if told else WHOLE)
        return cls(since, ahead)

    def of(self, queue: str) -> Position:
        """Give how much was told of a queue."""
        return self.ahead.get(mark_of(queue)) or Position((self.base, WHOLE))


@lru_cache(maxsize=10_000)
def mark_of(queue: str) -> str:
    """Give the six characters that a queue has in an id."""
    return urlsafe_b64encode(sha256(queue.encode()).digest())[:6].decode()


def show_bearings(base: int, ahead: Iterable[tuple[str, Position]]) -> str:
    """Write the id of an event; `ahead` are positions by queue, those before the base are left out."""
    later = [(mark_of(queue), at) for queue, at in ahead if at.entry[0] > base]
    if len(later) > MOST_AHEAD:
        later = sorted(later, key=lambda each: each[1])[-MOST_AHEAD:]
    return ".".join([f"{base:x}", *(_shown(mark, at, base) for mark, at in later)])


def _shown(mark: str, at: Position, base: int) -> str:
    entry = f"{mark}{at.entry[0] - base:x}-{at.entry[1]:x}"
    return entry if at.told == WHOLE else f"{entry}-{at.told:x}"
