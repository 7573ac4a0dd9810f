"""The wire types: what goes over HTTP and through the Python API, checked, and nothing else.

`JobBody` is what a caller sends, `JobDocument` and its companions are what comes back, `Problem` is how a
refusal looks. This package knows no store and no rule of the line; the client is built on it alone.
"""

from maitred.wire.allowed import Allowed
from maitred.wire.batch import BatchBody, Erc, RowRun, parse_batch, read_batch
from maitred.wire.batch_document import (
    BATCH_EVENTS,
    BatchDocument,
    BatchEvent,
    BatchReportEvent,
    BatchStateEvent,
    ReportDocument,
    ReportRow,
)
from maitred.wire.body import CommandRun, HandlerRun, JobBody, StageRun, SubmitterBody, check_body, parse_body
from maitred.wire.codec import decode_body, decode_json, encode_body, encode_json
from maitred.wire.document import (
    CheckDocument,
    Estimate,
    JobDocument,
    Page,
    Problem,
    QueueDocument,
    Reason,
    RunningJob,
    SubmitterDocument,
    TimelineEntry,
    WorkerDocument,
)
from maitred.wire.events import EVENTS, PlaceEvent, ResetEvent, ResultEvent, StateEvent, WatchEvent
from maitred.wire.request import CancelBody, CheckBody, DurationBody, MoveBody, PauseBody, parse_request

__all__ = [
    "BATCH_EVENTS",
    "EVENTS",
    "Allowed",
    "BatchBody",
    "BatchDocument",
    "BatchEvent",
    "BatchReportEvent",
    "BatchStateEvent",
    "CancelBody",
    "CheckBody",
    "CheckDocument",
    "CommandRun",
    "DurationBody",
    "Erc",
    "Estimate",
    "HandlerRun",
    "JobBody",
    "JobDocument",
    "MoveBody",
    "Page",
    "PauseBody",
    "PlaceEvent",
    "Problem",
    "QueueDocument",
    "Reason",
    "ReportDocument",
    "ReportRow",
    "ResetEvent",
    "ResultEvent",
    "RowRun",
    "RunningJob",
    "StageRun",
    "StateEvent",
    "SubmitterBody",
    "SubmitterDocument",
    "TimelineEntry",
    "WatchEvent",
    "WorkerDocument",
    "check_body",
    "decode_body",
    "decode_json",
    "encode_body",
    "encode_json",
    "parse_batch",
    "parse_body",
    "parse_request",
    "read_batch",
]
