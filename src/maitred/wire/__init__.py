"""The wire types: what goes over HTTP and through the Python API, checked, and nothing else.

`JobBody` is what a caller sends, `JobDocument` and its companions are what comes back, `Problem` is how a
refusal looks. This package knows no store and no rule of the line; the client is built on it alone.
"""

from maitred.wire.allowed import Allowed
from maitred.wire.body import CommandRun, HandlerRun, JobBody, SubmitterBody, check_body, parse_body
from maitred.wire.codec import decode_body, decode_json, encode_body, encode_json
from maitred.wire.document import (
    CheckDocument,
    Estimate,
    Hold,
    JobDocument,
    Page,
    Problem,
    ProfileDocument,
    QueueDocument,
    Reason,
    ReconcileDocument,
    RunningJob,
    SubmitterDocument,
    TimelineEntry,
    WorkerDocument,
)
from maitred.wire.events import EVENTS, AnyEvent, PlaceEvent, ResetEvent, ResultEvent, StateEvent, WatchEvent
from maitred.wire.request import (
    CancelBody,
    CheckBody,
    DurationBody,
    HoldBody,
    MoveBody,
    PauseBody,
    PriorityBody,
    ReconcileBody,
    RetryBody,
    parse_request,
)

__all__ = [
    "EVENTS",
    "Allowed",
    "AnyEvent",
    "CancelBody",
    "CheckBody",
    "CheckDocument",
    "CommandRun",
    "DurationBody",
    "Estimate",
    "HandlerRun",
    "Hold",
    "HoldBody",
    "JobBody",
    "JobDocument",
    "MoveBody",
    "Page",
    "PauseBody",
    "PlaceEvent",
    "PriorityBody",
    "Problem",
    "ProfileDocument",
    "QueueDocument",
    "Reason",
    "ReconcileBody",
    "ReconcileDocument",
    "ResetEvent",
    "ResultEvent",
    "RetryBody",
    "RunningJob",
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
