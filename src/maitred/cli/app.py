"""The command line: every command in one place."""

from pathlib import Path
from typing import Annotated

import typer

import maitred
from maitred.cli import (
    asking,
    batching,
    benching,
    completing,
    hearing,
    holding,
    housing,
    keeping,
    keys,
    legacy,
    live,
    probing,
    submitting,
)
from maitred.cli.calling import KEY_FILE
from maitred.cli.exits import HELP

app = typer.Typer(
    name="maitred",
    epilog=HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
# In the order of the help.
for part in (
    submitting,
    live,
    asking,
    hearing,
    housing,
    holding,
    keys,
    keeping,
    probing,
    benching,
    completing,
):
    app.add_typer(part.commands)
app.add_typer(live.glances)
app.add_typer(batching.commands, name="batch", rich_help_panel="More commands")
app.add_typer(keys.keys, name="keys", rich_help_panel="More commands")
app.add_typer(legacy.commands, name="legacy", rich_help_panel="More commands")


def _tell_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"maitred {maitred.__version__}")
        raise typer.Exit


@app.callback(help="A fair job queue: a place in line for everyone, an honest wait, and nobody lost.")
def with_key(
    key_file: Annotated[
        Path | None,
        typer.Option(
            "--key-file",
            envvar="MAITRED_KEY_FILE",
            help="A file with the API key to call with; else MAITRED_KEY.",
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_tell_version, help="Tell which one this is.")
    ] = False,
) -> None:
    """Note the file with the API key for the command."""
    del version
    KEY_FILE.set(key_file)


def run() -> None:
    """Run the command that was typed, or answer a shell that completes one."""
    completing.ready_to_complete()
    app(prog_name=completing.PROGRAM)
