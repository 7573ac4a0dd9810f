"""What a run says of itself while it goes on, and what it leaves behind: output, progress, artifacts.

Each piece has a number, counted from 1 for each version of a job over all its runs, so that a reader can go
on after the last one that it had. What is kept of a job is bounded: when it is more, the oldest pieces go.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from maitred.core.job import Lease

# `log` is what a handler says, `tty` what a terminal shows, `control` what a session's client is told;
# `progress` is JSON, `{"fraction", "message"}`.
Stream = Literal["stdout", "stderr", "log", "tty", "control", "progress"]


class Part(NamedTuple):
    """A piece of what a run says; `cut` bytes before it were left out."""

    stream: Stream
    data: bytes
    cut: int = 0


class Saying(NamedTuple):
    """What one run says after so many parts that it said `before`; what is told twice is kept once."""

    lease: "Lease"
    parts: tuple[Part, ...]
    before: int = 0


class Chunk(NamedTuple):
    """A piece as it is kept: its number, when the store heard it, and in which attempt it was said."""

    number: int
    at: int
    attempt: int
    stream: Stream
    data: bytes
    cut: int = 0


class Output(NamedTuple):
    """Some of what a job said: the pieces after the one that was asked for, and the numbers of all there are.

    Pieces before `first` are no longer kept; `last` is the number of the newest, 0 if there is none. `record`
    is the version that they are of, and `ended` tells that no more will come.
    """

    record: int
    chunks: list[Chunk]
    first: int
    last: int
    ended: bool


class Artifact(NamedTuple):
    """A file that a job made and that is kept."""

    name: str
    media_type: str
    data: bytes


class ArtifactView(NamedTuple):
    """A kept file without its content."""

    name: str
    media_type: str
    size: int


def merged(sayings: Iterable[Saying]) -> list[Saying]:
    """Put together what is said of the same run, in the order in which it is said."""
    found: dict[Lease, Saying] = {}
    for each in sayings:
        known = found.get(each.lease)
        found[each.lease] = known._replace(parts=known.parts + each.parts) if known else each
    return list(found.values())


def unique(artifacts: Iterable[Artifact]) -> tuple[Artifact, ...]:
    """Leave one file of each name, the last."""
    return tuple({artifact.name: artifact for artifact in artifacts}.values())


def progress_of(parts: Iterable[Part]) -> bytes | None:
    """Give the last progress that is said there, None if there is none."""
    found = [part.data for part in parts if part.stream == "progress"]
    return found[-1] if found else None
