"""The settings: `maitred.toml` and the environment, checked at start.

The file is found in the working directory or named by the caller. Every value can also come from the
environment, which wins: `MAITRED_STORE__URL` is `store.url`, `MAITRED_QUEUES__GRADING__ORDER` is
`queues.grading.order`. With neither there is one queue, `default`, on the embedded store. A mistake is never
guessed around: all of them are told at once, a line for each, with the key and what is allowed there.
"""

from maitred.config.loading import FILE, load
from maitred.config.tables import (
    BackoffConfig,
    ClassConfig,
    Config,
    DelayConfig,
    InteractiveConfig,
    LogConfig,
    MaxWaitingConfig,
    QueueConfig,
    SandboxConfig,
    ServerConfig,
    StoreConfig,
    WorkerConfig,
)

__all__ = [
    "FILE",
    "BackoffConfig",
    "ClassConfig",
    "Config",
    "DelayConfig",
    "InteractiveConfig",
    "LogConfig",
    "MaxWaitingConfig",
    "QueueConfig",
    "SandboxConfig",
    "ServerConfig",
    "StoreConfig",
    "WorkerConfig",
    "load",
]
