"""What receivers are told: the messages of callbacks, each as things were at the moment that it tells of.

A message is `{"type", "timestamp", "data"}`. Its id is the same each time that it is sent, and no other
message has it. The report of a batch may be asked for as XML or turtle: then it is sent bare.
"""

from dataclasses import replace
from typing import Any

from maitred.core.batch import Batch
from maitred.core.job import Job, Phase, View
from maitred.core.notices import Delivery, Notice, NoticeErrand
from maitred.core.settings import Settings
from maitred.service.batch_document import batch_document
from maitred.service.delivery import Message
from maitred.service.document import Document, job_document
from maitred.service.keyring import LOCAL
from maitred.service.moment import iso, iso_or_none, seconds
from maitred.service.report import MEDIA_TYPES, as_turtle, as_xml
from maitred.wire import decode_body, decode_json, encode_json
from maitred.wire.batch import SUBMITTED_BY, ResponseType

_PHASES = {"started": Phase.RUNNING, "requeued": Phase.WAITING, "ended": Phase.ENDED}
# What is known of the present only, and what a run that has not ended does not have yet.
_OF_NOW: Document = dict.fromkeys(("position", "release_at", "nonce", "estimate", "waiting_for"))
_NOT_YET: Document = {"progress": None, "artifacts": []}


def address_of(job: Job) -> str:
    """Give the response address of a job; empty, and so refused, if its body has none."""
    url: str = decode_body(job.body).get("response_url", "")
    return url


def notice_message(queue: str, errand: NoticeErrand, settings: Settings) -> Message:
    """Give the message that tells of a start, a return to the line or an end."""
    view, notice = errand
    document = job_document(queue, _as_of(view, notice), settings) | _OF_NOW
    if notice.kind != "ended":
        document |= _NOT_YET
    kind = f"job.{notice.kind}"
    content = _message(kind, iso(notice.at), document)
    body = decode_body(view.job.body)
    by, trace = body.get("submitted_by", LOCAL), body.get("trace") or {}
    return Message(notice_id(queue, notice.number), by, content, queue=queue, kind=kind, trace=trace)


def notice_id(queue: str, number: int) -> str:
    """Give the id of the message that a notice becomes."""
    return f"job_{queue}_{number}"


def _as_of(view: View, notice: Notice) -> View:
    """Give a job as it was when something happened to it that is told now.

    Its message and result are those of its end, if that is what is told.
    """
    job, started = view.job, notice.kind == "started"
    waits = notice.kind == "requeued"
    still = notice.kind == "ended" and job.phase is Phase.ENDED and job.ended_at == notice.at
    then = replace(
        job,
        phase=_PHASES[notice.kind],
        stage=notice.stage,
        attempt=notice.attempt,
        worker="" if waits else notice.worker,
        code=notice.code,
        message=job.message if still else notice.message,
        result=job.result if still else notice.result,
        timeline=[run for run in job.timeline if run.end <= notice.at],
    )
    others = set(view.running_versions) - {job.version}
    running = sorted(others | {job.version} if started else others, reverse=True)
    granted = view.granted if started and view.started == notice.at else None
    return replace(
        view,
        job=then,
        holds=(),
        running_versions=tuple(running),
        started=notice.at if started else None,
        granted=granted,
    )


def delivery_document(queue: str, delivery: Delivery) -> Document:
    """Give one try at a message."""
    return {
        "id": notice_id(queue, delivery.number),
        "type": f"job.{delivery.kind}",
        "at": iso(delivery.at),
        "attempt": delivery.tries,
        "answer": delivery.answer,
        "said": delivery.said,
        "took": seconds(delivery.took),
        "next_at": iso_or_none(delivery.again_at),
    }


def report_message(queue: str, batch: Batch, form: ResponseType) -> Message:
    """Give the message with a batch's last report, in the form that was asked for."""
    report: Document = decode_json(batch.report)
    kind = "batch.reported"
    if form == "json":
        document = {**batch_document(queue, batch, ()), "report": report}
        content = _message(kind, report["at"], document)
    else:
        content = as_xml(report) if form == "xml" else as_turtle(report)
    id, by = report_id(queue, batch, batch.sequence), decode_json(batch.submission).get(SUBMITTED_BY, LOCAL)
    return Message(id, by, content, MEDIA_TYPES[form], queue=queue, kind=kind)


def report_id(queue: str, batch: Batch, sequence: int) -> str:
    """Give the id of the message with the n-th report of a batch."""
    return f"batch_{queue}_{batch.id}_{sequence}_{batch.created_at}"


def _message(kind: str, timestamp: str, document: dict[str, Any]) -> bytes:
    """Write a message; what was to be run is not repeated."""
    data = {name: value for name, value in document.items() if name != "run"}
    return encode_json({"type": kind, "timestamp": timestamp, "data": data})
