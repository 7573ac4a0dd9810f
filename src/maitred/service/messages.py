"""What receivers are told: the messages of callbacks, each as things were at the moment that it tells of.

A message is `{"type", "timestamp", "data"}`. Its id is the same each time that it is sent, and no other
message has it. The report of a batch may be asked for as XML or turtle: then it is sent bare.
"""

from typing import Any

from maitred.core.batch import Batch
from maitred.service.batch_document import batch_document
from maitred.service.delivery import Message
from maitred.service.document import Document
from maitred.service.keyring import LOCAL
from maitred.service.report import MEDIA_TYPES, as_turtle, as_xml
from maitred.wire import decode_json, encode_json
from maitred.wire.batch import ResponseType


def report_message(queue: str, batch: Batch, form: ResponseType) -> Message:
    """Give the message with a batch's last report, in the form that was asked for."""
    report: Document = decode_json(batch.report)
    id = f"batch_{queue}_{batch.id}_{batch.sequence}_{batch.created_at}"
    if form == "json":
        document = {**batch_document(queue, batch, ()), "report": report}
        content = _message("batch.reported", report["at"], document)
    else:
        content = as_xml(report) if form == "xml" else as_turtle(report)
    return Message(id, LOCAL, content, MEDIA_TYPES[form])


def _message(kind: str, timestamp: str, document: dict[str, Any]) -> bytes:
    """Write a message; what was to be run is not repeated."""
    data = {name: value for name, value in document.items() if name != "run"}
    return encode_json({"type": kind, "timestamp": timestamp, "data": data})
