"""What the commands are given that open a house, or look at one: settings, a store, an address, workers."""

from dataclasses import dataclass
from typing import Annotated

import typer

from maitred.cli import options


@dataclass(frozen=True, kw_only=True)
class Opening:
    """The settings, and where data is kept."""

    config: options.ConfigFile = None
    data: options.Data = options.DEFAULT_DATA
    as_json: options.Json = False


@dataclass(frozen=True, kw_only=True)
class AtStore(Opening):
    """A store that is there."""

    store: options.StoreUrl = None


@dataclass(frozen=True, kw_only=True)
class Logging(Opening):
    """How logs are written."""

    log_format: options.LogFormat = None


@dataclass(frozen=True, kw_only=True)
class Listening(Logging):
    """Where a server listens."""

    host: options.Host = options.DEFAULT_HOST
    port: options.Port = options.DEFAULT_PORT


@dataclass(frozen=True, kw_only=True)
class Staffed(Logging):
    """What workers are made of."""

    slots: options.Slots = options.DEFAULT_SLOTS
    app: options.App = None
    require: options.Require = None


@dataclass(frozen=True, kw_only=True)
class Up(Listening, Staffed):
    """Of `maitred up`."""


@dataclass(frozen=True, kw_only=True)
class Serve(Listening, AtStore):
    """Of `maitred serve`."""


@dataclass(frozen=True, kw_only=True)
class Work(Staffed, AtStore):
    """Of `maitred work`."""

    health_port: options.HealthPort = None
    queue: Annotated[list[str] | None, typer.Option("--queue", "-q", help="Only these queues.")] = None
