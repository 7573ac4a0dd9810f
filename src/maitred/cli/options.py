"""The options that commands share, each said once."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from maitred.cli.guessing import queue_names

WHERE = "Where, and how it is told"

Queue = Annotated[
    str,
    typer.Option("--queue", "-q", envvar="MAITRED_QUEUE", help="The queue.", autocompletion=queue_names),
]
Server = Annotated[
    str | None,
    typer.Option(
        "--server",
        envvar="MAITRED_URL",
        rich_help_panel=WHERE,
        help="The server's address; else the one that is noted.",
    ),
]
AskedStore = Annotated[
    str | None,
    typer.Option("--store", rich_help_panel=WHERE, help="Ask the store at this url, and no server."),
]
Local = Annotated[
    bool,
    typer.Option(
        "--local", rich_help_panel=WHERE, help="Ask the store of the settings or the data directory itself."
    ),
]
Data = Annotated[
    Path,
    typer.Option(
        "--data", rich_help_panel=WHERE, help="The data directory: of the store, and of the server's address."
    ),
]
Json = Annotated[
    bool,
    typer.Option(
        "--json", rich_help_panel=WHERE, help="Print JSON for programs: a document, or a line for each event."
    ),
]
Version = Annotated[int | None, typer.Option("--version", min=1, help="An older version.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=500, help="How many at most.")]
Cursor = Annotated[
    str | None, typer.Option("--cursor", help="Go on after an earlier answer: its `next`, as --json has it.")
]
Submitter = Annotated[str | None, typer.Option("--as", help="user:ID or team:ID; else your login name.")]
Files = Annotated[
    list[str] | None,
    typer.Option(
        "--file",
        "-f",
        help="A file to lay beside the program, or a directory with all in it; NAME=FILE names it anew, "
        "and - is the input.",
    ),
]
Handler = Annotated[str | None, typer.Option("--handler", help="A handler instead of a program.")]
Args = Annotated[
    list[str] | None, typer.Option("--arg", help="name=value for the handler; JSON, or else text.")
]
Priority = Annotated[int | None, typer.Option("--priority", help="0..99, lower first.")]
Bulk = Annotated[bool, typer.Option("--bulk", help="Yield to all others.")]
Class = Annotated[str | None, typer.Option("--class", help="One of the queue's duration classes.")]
Duration = Annotated[str | None, typer.Option("--duration", help="How long it may run, such as 5s or 2m.")]
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
DEFAULT_LIMIT = 20
DEFAULT_DATA = Path(".maitred")
DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 7500
DEFAULT_SLOTS = 2
