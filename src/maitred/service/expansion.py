"""Expansion: the bodies of a batch's jobs, from the list that was sent or from the rows of its manifest.

A row becomes a job with the key `BID/row`, the batch's submitter and profile, and its columns as arguments.
The same submission gives the same keys each time, so a server may begin again where another one died.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from maitred.service.manifests import LineFault, ManifestRow, read_manifest
from maitred.wire import BatchBody
from maitred.wire.batch import completed

PAYLOAD_TYPES = {
    "single-file": "file",
    "object-manifest": "file",
    "manifest-of-containers": "container",
    "manifest-of-manifests": "manifest",
}


class Entry(NamedTuple):
    """One job to be: what people call it, and its body."""

    name: str
    body: dict[str, Any]


def needs_payload(body: BatchBody) -> bool:
    """Tell whether the manifest has to be fetched from its address."""
    return body.payload is None and body.payload_filename is not None and body.manifest_type != "single-file"


def manifest(body: BatchBody, payload: bytes | None) -> Iterator[ManifestRow | LineFault]:
    """Give the rows and the faults of a batch's manifest; `payload` is what was fetched. It may have none."""
    if payload is None and body.payload is not None:
        payload = body.payload.encode()
    return iter(()) if payload is None else read_manifest(payload)


def entries(id: str, body: BatchBody, payload: bytes | None) -> Iterator[Entry]:
    """Give the jobs of a batch in order; its manifest has no fault."""
    for index in range(len(body.jobs or ())):
        yield Entry(f"jobs.{index}", {**body.job(index), "batch": id})
    if body.manifest_type == "single-file" and body.payload_filename is not None:
        yield _entry(id, body, 1, "the file", {"url": body.payload_filename})
    rows = (row for row in manifest(body, payload) if isinstance(row, ManifestRow))
    for number, row in enumerate(rows, 1):
        yield _entry(id, body, number, f"row {number} (line {row.line})", row.columns)


def _entry(id: str, body: BatchBody, number: int, name: str, columns: dict[str, Any]) -> Entry:
    args: dict[str, Any] = dict(body.run.args) if body.run else {}
    if "url" in columns:
        args["payload_url"] = columns["url"]
        args["payload_type"] = PAYLOAD_TYPES[body.manifest_type]
    run: dict[str, Any] = {"args": {**args, **_said_of_all(body), **columns}}
    if body.run and body.run.handler:
        run["handler"] = body.run.handler
    return Entry(name, completed(vars(body), {"key": f"{id}/{number}", "run": run, "batch": id}))


def _said_of_all(body: BatchBody) -> dict[str, Any]:
    """Give what a submission says of all its rows, as far as it was sent."""
    said: dict[str, Any] = {}
    for name in ("response_type", "submission_mode"):
        if name in body.model_fields_set:
            said[name] = getattr(body, name)
    if body.erc is not None:
        said["erc"] = body.erc.model_dump()
    return said
