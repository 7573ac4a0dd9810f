"""Maitred, a fair job queue on Valkey/Redis.

A maître d' takes reservations, seats every party in a fair order, quotes an honest wait, and loses nobody.
Maitred does that for shared compute.
"""

import importlib
from typing import TYPE_CHECKING

from maitred import webhooks
from maitred.errors import (
    AlreadyEnded,
    BatchReporting,
    BatchSealed,
    BatchUnfinished,
    ConfigError,
    Conflict,
    DataDirectoryInUse,
    EmbeddedError,
    EvictionForbidden,
    Fault,
    Forbidden,
    ForgedWebhook,
    IllegalMove,
    Interactive,
    InvalidJob,
    JobFailed,
    LeaseLost,
    LockLost,
    LongerDuration,
    MaitredError,
    MalformedWebhook,
    NoReport,
    NotFailed,
    NotFound,
    NotHeld,
    NotMovable,
    NotRunning,
    NotWaiting,
    OtherBatch,
    OtherNonce,
    OtherSubmitter,
    Overtaken,
    QueueFull,
    SchemaMismatch,
    ServerUnreachable,
    SessionDenied,
    SessionLost,
    SettingsForbidden,
    StaleWebhook,
    StoreError,
    StoreUnavailable,
    TooLarge,
    TooOften,
    Transient,
    Unauthorized,
    UnknownArtifact,
    UnknownBatch,
    UnknownJob,
    UnknownKey,
    UnknownQueue,
    UnverifiedWebhook,
)

if TYPE_CHECKING:
    from maitred.core.job import Submitter
    from maitred.service.intake import Accepted
    from maitred.service.payload import fetch
    from maitred.service.queue import Queue
    from maitred.worker.context import RunningJob, current_job
    from maitred.worker.stage_job import StageJob

__version__ = "0.1.0"

__all__ = [
    "Accepted",
    "AlreadyEnded",
    "BatchReporting",
    "BatchSealed",
    "BatchUnfinished",
    "ConfigError",
    "Conflict",
    "DataDirectoryInUse",
    "EmbeddedError",
    "EvictionForbidden",
    "Fault",
    "Forbidden",
    "ForgedWebhook",
    "IllegalMove",
    "Interactive",
    "InvalidJob",
    "JobFailed",
    "LeaseLost",
    "LockLost",
    "LongerDuration",
    "MaitredError",
    "MalformedWebhook",
    "NoReport",
    "NotFailed",
    "NotFound",
    "NotHeld",
    "NotMovable",
    "NotRunning",
    "NotWaiting",
    "OtherBatch",
    "OtherNonce",
    "OtherSubmitter",
    "Overtaken",
    "Queue",
    "QueueFull",
    "RunningJob",
    "SchemaMismatch",
    "ServerUnreachable",
    "SessionDenied",
    "SessionLost",
    "SettingsForbidden",
    "StageJob",
    "StaleWebhook",
    "StoreError",
    "StoreUnavailable",
    "Submitter",
    "TooLarge",
    "TooOften",
    "Transient",
    "Unauthorized",
    "UnknownArtifact",
    "UnknownBatch",
    "UnknownJob",
    "UnknownKey",
    "UnknownQueue",
    "UnverifiedWebhook",
    "__version__",
    "current_job",
    "fetch",
    "webhooks",
]

# Imported when first named: a command that only asks a server would wait for parts that it does not use.
_HOMES = {
    "Accepted": "maitred.service.intake",
    "Queue": "maitred.service.queue",
    "RunningJob": "maitred.worker.context",
    "StageJob": "maitred.worker.stage_job",
    "Submitter": "maitred.core.job",
    "current_job": "maitred.worker.context",
    "fetch": "maitred.service.payload",
}

# A type checker must not see these: for it, every misspelt name would exist.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
