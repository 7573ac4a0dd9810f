"""A batch as callers see it: what was sent, where it is, how many of its jobs are where, and its report."""

from collections.abc import Sequence
from typing import Any

from maitred.core.batch import Batch
from maitred.core.job import Held
from maitred.service.document import Document, hold_document
from maitred.service.moment import iso
from maitred.wire import decode_json

# What a submission may say, and what holds where it does not.
_SENT: dict[str, Any] = {
    "payload_filename": None,
    "manifest_type": "object-manifest",
    "response_type": "json",
    "submission_mode": "add",
    "erc": None,
    "response_url": None,
    "run": None,
    "class": None,
    "duration": None,
    "priority": 5,
    "bulk": False,
    "seal": True,
}


def batch_document(queue: str, batch: Batch, holds: Sequence[Held]) -> Document:
    """Give the document of a batch; a payload and the bodies of its jobs are not repeated."""
    sent: dict[str, Any] = decode_json(batch.submission)
    return {
        "id": batch.id,
        "queue": queue,
        "external_id": batch.external_id or None,
        **batch_state_document(batch),
        "sequence": batch.sequence,
        "unsent": batch.unsent,
        "holds": [hold_document(hold) for hold in holds if (hold.kind, hold.name) == ("batch", batch.id)],
        "created_at": iso(batch.created_at),
        "modified_at": iso(batch.modified_at),
        "submitter": {"type": batch.submitter.type, "id": batch.submitter.id},
        "profile_name": batch.profile or None,
        **{name: sent.get(name, default) for name, default in _SENT.items()},
    }


def batch_state_document(batch: Batch) -> Document:
    """Give what watchers of a batch are told when it changes."""
    return {
        "state": batch.state.value,
        "sealed": batch.sealed,
        "counts": batch.counts,
        "message": batch.fault or None,
    }


def report_news(batch: Batch) -> Document:
    """Give what watchers are told of the last report: how many rows it has of each kind, and not each row."""
    report: Document = decode_json(batch.report)
    told = {name: report.get(name) for name in ("sequence", "kind", "at", "state", "message")}
    return told | {name: len(report[name]) for name in ("completed", "failed", "deleted")}
