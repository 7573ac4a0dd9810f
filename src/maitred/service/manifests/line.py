"""Lines of a manifest: what a good one gives and how a bad one is told of."""

from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import NamedTuple

# A manifest of a megabyte can be wrong in thousands of places; nobody reads past the first hundred.
MOST_FAULTS = 100
LONGEST_LINE = 1 << 20
_QUOTED = 60


class ManifestRow(NamedTuple):
    """One row: the number of the line that it ends on, and its columns by name."""

    line: int
    columns: dict[str, str | int]


class LineFault(NamedTuple):
    """What is wrong with a line."""

    line: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


class BadManifest(Exception):
    """The manifest has bad lines."""

    def __init__(self, faults: Sequence[LineFault]) -> None:
        """Keep the faults; the message has each of them."""
        self.faults = list(faults)
        super().__init__("; ".join(map(str, faults)))


class BadLine(Exception):
    """A line cannot be read at all."""


def split_lines(payload: bytes) -> Iterator[tuple[int, bytes]]:
    """Give each line with its number, without its LF or CRLF; other separators are part of a line."""
    for number, line in enumerate(BytesIO(payload), 1):
        yield number, line.removesuffix(b"\n").removesuffix(b"\r")


def decode_line(line: bytes) -> str:
    """Give the text of a line; `BadLine` if it is none, or is longer than any row can be."""
    if len(line) > LONGEST_LINE:
        raise BadLine(f"has {len(line)} bytes; a line has at most {LONGEST_LINE}")
    if b"\0" in line:
        raise BadLine("holds a zero character")
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise BadLine(f"is not UTF-8: the byte at {error.start + 1} belongs to no character") from None


def quoted(text: str) -> str:
    """Give text for a message, cut where it is long."""
    return repr(text if len(text) <= _QUOTED else text[:_QUOTED] + "…")
