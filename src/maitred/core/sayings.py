"""What runs said and left behind, by record: the streams of pieces, and the files.

A stream is bounded by bytes: each piece counts as its data and a little more, so that empty pieces are
bounded too. When there is more than the limit the oldest go, a bounded number with each saying.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from maitred.core.output import Artifact, Chunk, Part

PIECE_COST = 32
DROPPED_PER_SAYING = 1000


@dataclass(slots=True)
class Spoken:
    """What is kept of one version: the pieces, what they count, and the number of the last that was said."""

    last: int = 0
    size: int = 0
    chunks: deque[Chunk] = field(default_factory=deque)

    @property
    def first(self) -> int:
        """The number of the oldest piece that is kept, or of the next one if there is none."""
        return self.last + 1 - len(self.chunks)

    def copy(self) -> "Spoken":
        """Copy it, so that what is said later is not seen."""
        return Spoken(self.last, self.size, deque(self.chunks))


class Sayings:
    """Streams and files of one queue's records."""

    def __init__(self) -> None:
        """Begin with nothing said."""
        self.streams: dict[int, Spoken] = {}
        self.files: dict[int, tuple[Artifact, ...]] = {}

    def add(self, record: int, attempt: int, parts: Sequence[Part], now: int, limit: int) -> None:
        """Append what a run says, and drop the oldest pieces of it all if that is too much."""
        if not parts:
            return
        spoken = self.streams.setdefault(record, Spoken())
        for stream, data, cut in parts:
            spoken.last += 1
            spoken.chunks.append(Chunk(spoken.last, now, attempt, stream, data, cut))
            spoken.size += len(data) + PIECE_COST
        left = DROPPED_PER_SAYING + len(parts)
        while spoken.size > limit and spoken.chunks and left:
            spoken.size -= len(spoken.chunks.popleft().data) + PIECE_COST
            left -= 1

    def keep(self, record: int, artifacts: tuple[Artifact, ...]) -> None:
        """Keep these files of a record and no others."""
        if artifacts:
            self.files[record] = artifacts
        else:
            self.files.pop(record, None)

    def forget(self, record: int) -> None:
        """Drop all that a record said and left behind."""
        self.streams.pop(record, None)
        self.files.pop(record, None)
