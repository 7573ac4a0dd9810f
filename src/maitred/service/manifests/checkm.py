"""Checkm 0.7: lines of `url | algorithm | digest | size | last modified | name`, or as a header says.

Lines that begin with `#` are comments; those with `#%` say something of the manifest: `#%fields` names the
columns, `#%eof` is its end. Columns may be left empty, or off at the end of a line; blanks around them do not
count. Outside of addresses, `%7C` and the like stand for characters that a column cannot hold.
"""

import re
from collections.abc import Iterator
from urllib.parse import unquote_to_bytes, urlsplit

from maitred.service.digest import ALGORITHMS, algorithm_name
from maitred.service.manifests.line import (
    BadLine,
    LineFault,
    ManifestRow,
    decode_line,
    quoted,
    split_lines,
)

VERSION = "#%checkm_0.7"
COLUMNS = ("url", "digest_algorithm", "digest", "size", "last_modified", "name")
FIELDS = {
    "fileurl": "url",
    "hashalgorithm": "digest_algorithm",
    "hashvalue": "digest",
    "filesize": "size",
    "filelastmodified": "last_modified",
    "filename": "name",
    "mimetype": "mime_type",
    "primaryidentifier": "primary_id",
    "localidentifier": "local_id",
    "creator": "who",
    "title": "what",
    "date": "when",
}
_BLANKS = " \t"
_LARGEST_SIZE = (1 << 63) - 1
_ESCAPES = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_ADDRESS = re.compile(r"https?://[^\s\x00-\x20\x7f|]+", re.IGNORECASE)


def read_checkm(payload: bytes) -> Iterator[ManifestRow | LineFault]:
    """Give the rows and the faults of a Checkm manifest."""
    reader = _Reader()
    number = 0
    for number, line in split_lines(payload):
        try:
            yield from reader.read(number, decode_line(line))
        except BadLine as error:
            yield LineFault(number, str(error))
        if reader.lost:
            return
    if not reader.ended and not payload.endswith(b"\n"):
        yield LineFault(
            number, "ends without a line end, and there is no #%eof: the manifest may have been cut off"
        )


class _Reader:
    """What the lines so far have said of those that follow."""

    def __init__(self) -> None:
        self.ended = False
        # What follows a bad header cannot be read.
        self.lost = False
        self._columns: tuple[str, ...] = COLUMNS
        self._headed = False
        self._rows = False

    def read(self, number: int, line: str) -> Iterator[ManifestRow | LineFault]:
        """Read one line; `BadLine`, or several faults, if it is wrong."""
        if number == 1 and line.rstrip(_BLANKS).lower() != VERSION:
            self.lost = True
            raise BadLine(f"must be {VERSION}, not {quoted(line)}")
        if not line.strip(_BLANKS):
            return
        if self.ended:
            raise BadLine("comes after #%eof")
        if line.startswith("#%"):
            self._structured(line)
        elif not line.startswith("#"):
            self._rows = True
            yield from self._row(number, line)

    def _structured(self, line: str) -> None:
        symbol, *rest = (token.strip(_BLANKS) for token in line.split("|"))
        symbol = symbol.lower()
        if symbol == "#%eof":
            self.ended = True
        elif symbol == "#%fields":
            self._fields(rest)

    def _fields(self, ids: list[str]) -> None:
        if self._headed:
            raise BadLine("is a second #%fields")
        if self._rows:
            raise BadLine("#%fields comes after rows")
        self._headed = self.lost = True
        names = [_column(id) for id in ids]
        if not all(names):
            raise BadLine(f"#%fields has no name for column {names.index('') + 1}")
        if twice := [name for index, name in enumerate(names) if name in names[:index]]:
            raise BadLine(f"#%fields names {quoted(twice[0])} twice")
        if "url" not in names:
            raise BadLine("#%fields has no nfo:fileurl")
        self._columns, self.lost = tuple(names), False

    def _row(self, number: int, line: str) -> Iterator[ManifestRow | LineFault]:
        tokens = [token.strip(_BLANKS) for token in line.split("|")]
        if len(tokens) > len(self._columns) and any(tokens[len(self._columns) :]):
            raise BadLine(f"has {len(tokens)} columns; the manifest has {len(self._columns)}")
        # A line may end early: what is left off is empty.
        row = {name: token for name, token in zip(self._columns, tokens, strict=False) if token}
        if faults := list(_faults(row)):
            yield from (LineFault(number, fault) for fault in faults)
        else:
            yield ManifestRow(number, _values(row))


def _column(id: str) -> str:
    """Give the name of a column by its field's id: `nfo:fileSize`, or the address that this stands for."""
    local = re.split(r"[:#/]", id)[-1]
    return FIELDS.get(local.lower(), local)


def _faults(row: dict[str, str]) -> Iterator[str]:
    yield from _address_faults(row.get("url", ""))
    yield from _digest_faults(row.get("digest_algorithm", ""), row.get("digest", ""))
    if (size := row.get("size")) and not _is_size(size):
        yield f"the size {quoted(size)} is not a whole number of bytes"


def _address_faults(url: str) -> Iterator[str]:
    if not url:
        yield "has too few columns: the address is missing"
    elif url.startswith("@"):
        yield f"includes another manifest ({quoted(url)}), which is not supported: list its rows here"
    elif not is_address(url):
        yield f"{quoted(url)} is not an http or https address"


def _digest_faults(algorithm: str, digest: str) -> Iterator[str]:
    if not algorithm and not digest:
        return
    if not algorithm:
        yield "has a digest without its algorithm"
    elif (name := algorithm_name(algorithm)) not in ALGORITHMS:
        yield f"the digest algorithm {quoted(algorithm)} is not one of {', '.join(ALGORITHMS)}"
    elif not digest:
        yield f"has too few columns: the {name} digest is missing"
    elif len(digest) != (length := ALGORITHMS[name]):
        yield f"the {name} digest has {len(digest)} characters instead of {length}"
    elif not re.fullmatch("[0-9A-Fa-f]+", digest):
        yield f"the {name} digest {quoted(digest)} is not hexadecimal"


def is_address(text: str) -> bool:
    """Tell whether this is an http or https address."""
    if not _ADDRESS.fullmatch(text):
        return False
    try:
        parts = urlsplit(text)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _is_size(text: str) -> bool:
    return bool(re.fullmatch("[0-9]{1,19}", text)) and int(text) <= _LARGEST_SIZE


def _values(row: dict[str, str]) -> dict[str, str | int]:
    """Give the columns as a job gets them: a size is a number, names of algorithms have one spelling."""
    values: dict[str, str | int] = {}
    for name, text in row.items():
        match name:
            case "url":
                values[name] = text
            case "digest_algorithm":
                values[name] = algorithm_name(text)
            case "digest":
                values[name] = text.lower()
            case "size":
                values[name] = int(text)
            case _:
                values[name] = _decoded(text)
    return values


def _decoded(text: str) -> str:
    """Read percent-encoding; what does not stand for characters stays as it is."""

    def read(found: re.Match[str]) -> str:
        try:
            return unquote_to_bytes(found[0]).decode()
        except UnicodeDecodeError:
            return found[0]

    return _ESCAPES.sub(read, text)
