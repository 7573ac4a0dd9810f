"""The wire types: what goes over HTTP and through the Python API, checked, and nothing else.

`JobBody` is what a caller sends, `JobDocument` and its companions are what comes back, `Problem` is how a
refusal looks. This package knows no store and no rule of the line; the client is built on it alone.
"""

from maitred.wire.allowed import Allowed
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
    "EVENTS",
    "Allowed",
    "CancelBody",
    "CheckBody",
    "CheckDocument",
    "CommandRun",
    "DurationBody",
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
    "ResetEvent",
    "ResultEvent",
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
    "parse_body",
    "parse_request",
]
