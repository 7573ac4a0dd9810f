"""CSV as RFC 4180 has it: the first row names the columns, every other row has as many of them, all text.

A quoted value may hold line ends, so a row may have several lines; its number is that of its last line. What
follows a quote that is wrong cannot be told apart from it, so reading ends there.
"""

import csv
from collections.abc import Iterator
from io import BytesIO

from maitred.service.manifests.line import LONGEST_LINE, BadLine, LineFault, ManifestRow, quoted

MOST_COLUMNS = 256


def read_table(payload: bytes) -> Iterator[ManifestRow | LineFault]:
    """Give the rows and the faults of a CSV table."""
    reader = csv.reader(map(_text, BytesIO(payload)), strict=True)
    columns: list[str] = []
    number = 0
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield LineFault(max(1, reader.line_num), f"is not CSV: {error}")
            return
        except BadLine as error:
            # The reader has not counted the line that it did not get.
            yield LineFault(reader.line_num + 1, str(error))
            return
        number = reader.line_num
        if not row:
            continue
        if fault := _text_fault("".join(row)):
            yield LineFault(number, fault)
            if columns:
                continue
            return
        if not columns:
            columns = row
            if faults := list(_header_faults(row)):
                yield from (LineFault(number, fault) for fault in faults)
                return
        elif len(row) != len(columns):
            few = "few" if len(row) < len(columns) else "many"
            yield LineFault(number, f"has too {few} columns: {len(row)} instead of {len(columns)}")
        else:
            yield ManifestRow(number, dict(zip(columns, row, strict=True)))


def _text(line: bytes) -> str:
    """Give a line to be taken apart; that it is text is checked when its row is whole."""
    if len(line) > LONGEST_LINE:
        raise BadLine(f"has {len(line)} bytes; a line has at most {LONGEST_LINE}")
    return line.decode(errors="surrogateescape")


def _text_fault(text: str) -> str:
    if "\0" in text:
        return "holds a zero character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "is not UTF-8"
    return ""


def _header_faults(names: list[str]) -> Iterator[str]:
    if len(names) > MOST_COLUMNS:
        yield f"names {len(names)} columns; at most {MOST_COLUMNS} are allowed"
        return
    for index, name in enumerate(names):
        if not name.strip():
            yield f"has no name for column {index + 1}"
        elif name != name.strip():
            yield f"the name {quoted(name)} of column {index + 1} begins or ends with a blank"
        elif name in names[:index]:
            yield f"names {quoted(name)} twice"
