"""Reports: what has become of the jobs of a batch, gathered row by row, and written in three forms.

The document is what is stored and shown. A response address may ask for it as JSON, XML or turtle. An update
report has only what changed since the one before: a job whose state is another than the one last told, and
one that was deleted since.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from typing import Any

from maitred.core.batch import Batch, RowView
from maitred.service.moment import iso
from maitred.wire import decode_json

ENDS = ("completed", "failed", "deleted")
MEDIA_TYPES = {"json": "application/json", "xml": "application/xml", "turtle": "text/turtle"}
NAMESPACE = "urn:maitred:report:"
LONGEST_MESSAGE = 10_000

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TURTLE_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_TO_ESCAPE = re.compile(r'["\\\x00-\x1f\x7f]')
_NOT_IN_IRI = re.compile(r'[\x00-\x20<>"{}|^`\\%]')

Document = dict[str, Any]


class Report:
    """A report that is being gathered."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._update = batch.sequence > 0
        self._rows: dict[str, list[Document]] = {end: [] for end in ENDS}

    @property
    def changed(self) -> bool:
        """Whether it tells anything; the first report always does."""
        return not self._update or any(self._rows.values())

    def add(self, rows: Iterable[RowView]) -> list[tuple[str, str]]:
        """Add rows; give the id and the mark of each of which something new is told."""
        told = []
        sequence = self._batch.sequence
        for row in rows:
            before = last_told(row.reported, sequence)
            if row.state not in ENDS or row.state == before:
                continue
            told.append((row.id, mark(row.state, sequence + 1, before)))
            self._rows[row.state].append(_row_document(row))
        return told

    def document(self) -> Document:
        """Give the report with the rows that it has."""
        batch = self._batch
        return {
            "batch": batch.id,
            "external_id": batch.external_id or None,
            "sequence": batch.sequence + 1,
            "kind": "update-report" if self._update else "report",
            "at": iso(batch.modified_at),
            "state": batch.verdict().value,
            "message": batch.fault or None,
            **self._rows,
        }


def mark(state: str, sequence: int, before: str) -> str:
    """Write down that the report with this number tells this state of a row, and what was told of it before.

    Rows are marked before the report is stored. A server that dies between the two has told nothing, so the
    mark says which report it belongs to: whoever makes that report again sees what was told before.
    """
    return f"{state} {sequence} {before}".rstrip()


def last_told(reported: str, sequence: int) -> str:
    """Give the state that was told of a row in the reports up to this number; nothing if none told it."""
    if not reported:
        return ""
    state, number, *before = reported.split(" ")
    return state if int(number) <= sequence else "".join(before)


def _row_document(row: RowView) -> Document:
    label = decode_json(row.label) if row.label else {}
    return {
        "id": row.id,
        "key": label.get("key", ""),
        "local_id": label.get("local_id"),
        "message": row.message[:LONGEST_MESSAGE] or None,
    }


def as_xml(document: Document) -> bytes:
    """Write a report as XML; characters that XML cannot hold are replaced."""
    root = ET.Element("report", {"xmlns": NAMESPACE, **_texts(document, _xml_text)})
    for end in ENDS:
        part = ET.SubElement(root, end)
        for row in document[end]:
            ET.SubElement(part, "job", _texts(row, _xml_text))
    written: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return written


def as_turtle(document: Document) -> bytes:
    """Write a report as turtle: the report is one subject, each job another."""
    about = f"<{NAMESPACE}{_iri(document['batch'])}:{document['sequence']}>"
    lines = [f"@prefix m: <{NAMESPACE}> .", "", f"{about} a m:Report"]
    lines += [f" ; m:{name} {literal(text)}" for name, text in _texts(document, str).items()]
    lines.append(" .")
    for end in ENDS:
        for row in document[end]:
            parts = [f"m:{name} {literal(text)}" for name, text in _texts(row, str).items()]
            job = f"<{NAMESPACE}job:{_iri(row['id'])}>"
            lines += [f"{about} m:{end} {job} .", f"{job} a m:Job ; {' ; '.join(parts)} ."]
    return ("\n".join(lines) + "\n").encode(errors="replace")


def literal(text: str) -> str:
    """Write text as turtle does, in quotes, on one line."""
    return '"' + _TO_ESCAPE.sub(lambda found: _escape(found[0]), text) + '"'


def _escape(character: str) -> str:
    return _TURTLE_ESCAPES.get(character, f"\\u{ord(character):04X}")


def _iri(text: str) -> str:
    return _NOT_IN_IRI.sub(lambda found: f"%{ord(found[0]):02X}", text)


def _xml_text(value: object) -> str:
    return _NOT_XML.sub("\ufffd", str(value))


def _texts(document: Document, write: Any) -> dict[str, str]:
    """Give the plain values that are there as text."""
    return {
        name: write(value)
        for name, value in document.items()
        if value is not None and not isinstance(value, list)
    }
