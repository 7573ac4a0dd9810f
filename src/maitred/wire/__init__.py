"""The wire types: what goes over HTTP and through the Python API, checked, and nothing else.

`JobBody` is what a caller sends, `JobDocument` and its companions are what comes back, `Problem` is how a
refusal looks. This package knows no store and no rule of the line; the client is built on it alone.
"""

from maitred.wire.body import CommandRun, HandlerRun, JobBody, SubmitterBody, delay_fault, parse_body
from maitred.wire.codec import decode_body, decode_json, encode_body, encode_json
from maitred.wire.document import (
    CheckDocument,
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
from maitred.wire.request import CancelBody, CheckBody, MoveBody, PauseBody, parse_request

__all__ = [
    "CancelBody",
    "CheckBody",
    "CheckDocument",
    "CommandRun",
    "HandlerRun",
    "JobBody",
    "JobDocument",
    "MoveBody",
    "Page",
    "PauseBody",
    "Problem",
    "QueueDocument",
    "Reason",
    "RunningJob",
    "SubmitterBody",
    "SubmitterDocument",
    "TimelineEntry",
    "WorkerDocument",
    "decode_body",
    "decode_json",
    "delay_fault",
    "encode_body",
    "encode_json",
    "parse_body",
    "parse_request",
]
