"""The options that commands share, each said once."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

Queue = Annotated[str, typer.Option("--queue", "-q", envvar="MAITRED_QUEUE", help="The queue.")]
Server = Annotated[
    str | None,
    typer.Option("--server", envvar="MAITRED_URL", help="The server's address; else the one that is noted."),
]
Data = Annotated[Path, typer.Option("--data", help="The data directory, where `up` notes its address.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Nonce = Annotated[int | None, typer.Option("--nonce", help="Only if this is still the job's place.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; it is shown to whoever asks.")]
JobId = Annotated[str, typer.Argument(metavar="ID", help="The job's id.")]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="The settings; else maitred.toml, if it is there.")
]
StoreUrl = Annotated[
    str | None, typer.Option("--store", help="The store's url; else the settings' or the embedded one.")
]
Host = Annotated[str, typer.Option("--host", help="Where to listen; other than loopback only with keys.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes a free one.")]
HealthPort = Annotated[
    int | None,
    typer.Option(
        "--health-port",
        min=0,
        max=65535,
        help="Answer /healthz, /readyz and /metrics here; 0 takes a free one.",
    ),
]


class Format(StrEnum):
    """How logs are written."""

    TEXT = "text"
    JSON = "json"


LogFormat = Annotated[
    Format | None,
    typer.Option("--log-format", help="Logs for people, or JSON for programs; else the settings'."),
]
App = Annotated[str | None, typer.Option("--app", help="The module whose queues' handlers are served.")]
Slots = Annotated[
    int, typer.Option("--slots", min=0, max=1024, help="How many jobs run at once, in each queue.")
]
Require = Annotated[
    str | None,
    typer.Option("--require", help="What the sandbox must enforce, as network,pids; else the settings'."),
]

DEFAULT_QUEUE = "default"
DEFAULT_DATA = Path(".maitred")
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 7500
DEFAULT_SLOTS = 2
