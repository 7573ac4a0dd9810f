"""Older records: one node a job, under a parent such as /ingest, with all of its state in the data.

The name is `mrtQ-`, two digits of priority (00 first), a flag for high priority, a worker's number and ten
digits of sequence; still older ones have neither flag nor worker. The data begin with a byte of status and
eight of time, and the rest is the payload: Java properties, JSON or XML.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from xml.etree import ElementTree

from maitred.core.stages import COMPLETED, FAILED, HELD, PENDING
from maitred.store.zookeeper.session import Session
from maitred.store.zookeeper.tree import DELETED

_NAME = re.compile(r"mrtQ-(\d\d)(?:([01])(\d))?(\d{10})")
_CONSUMED = "estimating"
_STATUSES = ("Pending", "Consumed", "Deleted", "Failed", "Completed", "Held")
_STATES = (PENDING, _CONSUMED, DELETED, FAILED, COMPLETED, HELD)
_MILLISECONDS_FROM = 100_000_000_000
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SEPARATOR = re.compile(r"(?<!\\)(?:\\\\)*(?P<is>[ \t\f]*[=:][ \t\f]*|[ \t\f]+)")
_WRITTEN = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Name(NamedTuple):
    """What an older record's name says; `high` and `worker` are None in the oldest."""

    priority: int
    high: bool | None
    worker: int | None
    sequence: int


@dataclass(frozen=True, slots=True)
class Record:
    """One older record; `state` is where its job goes on, `last` what that had finished. `at` is in µs."""

    node: str
    name: Name
    status: str
    state: str
    last: str | None
    at: int
    payload: dict[str, Any]


@dataclass(slots=True)
class Tally:
    """What was found under a parent: how many records of each status, and those that cannot be read."""

    counts: dict[str, int] = field(default_factory=dict)
    faults: list[tuple[str, str]] = field(default_factory=list)


def read_name(node: str) -> Name:
    """Read a record's name; ValueError if it is not one."""
    found = _NAME.fullmatch(node)
    if found is None:
        raise ValueError(f"{node!r} is not the name of a record")
    priority, high, worker, sequence = found.groups()
    flag = None if high is None else high == "1"
    return Name(int(priority), flag, None if worker is None else int(worker), int(sequence))


def read_record(node: str, data: bytes) -> Record:
    """Read a record; ValueError with what is wrong if it is not one."""
    name = read_name(node)
    if len(data) < 9:
        raise ValueError(f"it has {len(data)} bytes, fewer than status and time take")
    if data[0] >= len(_STATUSES):
        raise ValueError(f"{data[0]} is no status")
    time = int.from_bytes(data[1:9], "big", signed=True)
    at = time * 1_000 if abs(time) >= _MILLISECONDS_FROM else time * 1_000_000
    state = _STATES[data[0]]
    last = _CONSUMED if state == FAILED else None
    return Record(node, name, _STATUSES[data[0]], state, last, at, read_payload(data[9:]))


def read_payload(data: bytes) -> dict[str, Any]:
    """Read a payload, whichever of the three it is; ValueError if it is none."""
    start = data.lstrip()[:1]
    if start == b"{":
        content = json.loads(data)
        return dict(content)
    if start == b"<":
        return _xml(data)
    try:
        return properties(data.decode())
    except UnicodeDecodeError:
        return properties(data.decode("latin-1"))


async def records(session: Session, parent: str, tally: Tally) -> AsyncIterator[Record]:
    """Give the records under a parent in their order; deleted and unreadable ones are only counted."""
    for node in sorted(await session.children(parent) or []):
        if not node.startswith("mrtQ-"):
            continue
        found = await session.get(f"{parent}/{node}")
        if found is None:
            continue
        try:
            record = read_record(node, found.data)
        except ValueError as error:
            tally.faults.append((node, str(error)))
            continue
        tally.counts[record.status] = tally.counts.get(record.status, 0) + 1
        if record.state != DELETED:
            yield record


def properties(text: str) -> dict[str, Any]:
    """Read Java properties."""
    read: dict[str, Any] = {}
    for line in _logical_lines(text):
        found = _SEPARATOR.search(line)
        name, value = (line[: found.start("is")], line[found.end("is") :]) if found else (line, "")
        read[_unescaped(name)] = _unescaped(value)
    return read


def _logical_lines(text: str) -> Iterator[str]:
    """Join lines that end in a backslash, and leave comments and empty ones out."""
    pending = ""
    for natural in re.split(r"\r\n|\r|\n", text):
        line = natural.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        trailing = len(line) - len(line.rstrip("\\"))
        if trailing % 2:
            pending += line[:-1]
            continue
        yield pending + line
        pending = ""
    if pending:
        yield pending


def _unescaped(text: str) -> str:
    def char(found: re.Match[str]) -> str:
        if found[1]:
            return chr(int(found[1], 16))
        return _WRITTEN.get(found[2], found[2])

    # A character beyond 16 bits is written as two escapes.
    return _ESCAPE.sub(char, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _xml(data: bytes) -> dict[str, Any]:
    if b"<!ENTITY" in data:
        raise ValueError("XML with entities of its own is not read")
    try:
        root = ElementTree.fromstring(data)  # noqa: S314 - without entities there is nothing to blow up
    except ElementTree.ParseError as error:
        raise ValueError(f"the XML cannot be read: {error}") from None
    content = _element(root)
    return content if isinstance(content, dict) else {_local(root): content}


def _element(element: ElementTree.Element) -> Any:
    """Give the content of an element: text, or what is in it by name; several of a name are a list."""
    if not len(element):
        return (element.text or "").strip()
    content: dict[str, Any] = {}
    for child in element:
        name, value = child.get("key") or _local(child), _element(child)
        if name in content:
            first = content[name] if isinstance(content[name], list) else [content[name]]
            content[name] = [*first, value]
        else:
            content[name] = value
    return content


def _local(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2]
