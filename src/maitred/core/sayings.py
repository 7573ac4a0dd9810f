"""What runs said and left behind, by record: the streams of pieces, and the files.

A stream is bounded by bytes: each piece counts as its data and a little more, so that empty pieces are
bounded too. When there is more than the limit the oldest go, a bounded number with each saying.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from maitred.core.output import Artifact, Chunk, Part

PIECE_COST = 32
DROPPED_PER_SAYING = 1000
NOBODY = bytes(16)


@dataclass(slots=True)
class Spoken:
    """What is kept of one version: the pieces, what they count, and the number of the last that was said.

    `heard` is how many parts the run with the token `speaker`, the last to speak, has said.
    """

    last: int = 0
    size: int = 0
    chunks: deque[Chunk] = field(default_factory=deque)
    speaker: bytes = NOBODY
    heard: int = 0

    @property
    def first(self) -> int:
        """The number of the oldest piece that is kept, or of the next one if there is none."""
        return self.last + 1 - len(self.chunks)

    def copy(self) -> "Spoken":
        """Copy it, so that what is said later is not seen."""
        return replace(self, chunks=deque(self.chunks))

    def news(self, token: bytes, parts: Sequence[Part], before: int) -> Sequence[Part]:
        """Give those of a run's parts that were not heard yet: what is told again may have been heard."""
        known = self.heard if token == self.speaker else 0
        self.speaker, self.heard = token, max(known, before + len(parts))
        return parts[max(0, known - before) :]


class Sayings:
    """Streams and files of one queue's records."""

    def __init__(self) -> None:
        """Begin with nothing said."""
        self.streams: dict[int, Spoken] = {}
        self.files: dict[int, tuple[Artifact, ...]] = {}

    def of(self, record: int) -> Spoken:
        """Give what a record said, to be added to."""
        return self.streams.setdefault(record, Spoken())

    def add(self, record: int, attempt: int, parts: Sequence[Part], now: int, limit: int) -> None:
        """Append what a run says, and drop the oldest pieces of it all if that is too much."""
        if not parts:
            return
        spoken = self.of(record)
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
