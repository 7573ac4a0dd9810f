"""Manifests: the payload of a batch, read into rows. Two forms are told apart by the first line.

Checkm is text with a `|` between columns, and begins with `#%checkm_0.7`. Anything else is CSV, whose first
row names the columns. Reading is lazy, line by line, and fails in one way only: a line that is wrong gives a
fault with its number, and what is wrong with it.
"""

from collections.abc import Iterator

from maitred.service.manifests.checkm import read_checkm
from maitred.service.manifests.line import MOST_FAULTS, BadManifest, LineFault, ManifestRow
from maitred.service.manifests.table import read_table

_BOM = b"\xef\xbb\xbf"
_STRUCTURED = b"#%"


def read_manifest(payload: bytes) -> Iterator[ManifestRow | LineFault]:
    """Give the rows of a payload and the faults of its lines, in the order of the lines."""
    payload = payload.removeprefix(_BOM)
    if not payload.strip():
        return iter([LineFault(1, "the manifest is empty")])
    return read_checkm(payload) if payload.startswith(_STRUCTURED) else read_table(payload)


def parse_manifest(payload: bytes) -> list[ManifestRow]:
    """Give all rows; `BadManifest` lists the faults, the first hundred if there are more."""
    rows, faults = [], []
    for item in read_manifest(payload):
        if isinstance(item, ManifestRow):
            rows.append(item)
        else:
            faults.append(item)
            if len(faults) == MOST_FAULTS:
                break
    if faults:
        raise BadManifest(faults)
    return rows


__all__ = ["MOST_FAULTS", "BadManifest", "LineFault", "ManifestRow", "parse_manifest", "read_manifest"]
