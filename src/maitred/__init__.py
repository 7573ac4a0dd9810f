"""Maitred, a fair job queue on Valkey/Redis.

A maître d' takes reservations, seats every party in a fair order, quotes an honest wait, and loses nobody.
Maitred does that for shared compute.
"""

from maitred.core.job import Submitter
from maitred.errors import (
    AlreadyEnded,
    ConfigError,
    Conflict,
    DataDirectoryInUse,
    EmbeddedError,
    EvictionForbidden,
    Fault,
    InvalidJob,
    LeaseLost,
    MaitredError,
    NotFound,
    NotMovable,
    NotWaiting,
    OtherNonce,
    OtherSubmitter,
    QueueFull,
    SchemaMismatch,
    ServerUnreachable,
    SettingsForbidden,
    StoreError,
    StoreUnavailable,
    TooLarge,
    UnknownJob,
    UnknownQueue,
)
from maitred.service.intake import Accepted
from maitred.service.queue import Queue
from maitred.worker.context import RunningJob, current_job

__version__ = "0.1.0"

__all__ = [
    "Accepted",
    "AlreadyEnded",
    "ConfigError",
    "Conflict",
    "DataDirectoryInUse",
    "EmbeddedError",
    "EvictionForbidden",
    "Fault",
    "InvalidJob",
    "LeaseLost",
    "MaitredError",
    "NotFound",
    "NotMovable",
    "NotWaiting",
    "OtherNonce",
    "OtherSubmitter",
    "Queue",
    "QueueFull",
    "RunningJob",
    "SchemaMismatch",
    "ServerUnreachable",
    "SettingsForbidden",
    "StoreError",
    "StoreUnavailable",
    "Submitter",
    "TooLarge",
    "UnknownJob",
    "UnknownQueue",
    "__version__",
    "current_job",
]
