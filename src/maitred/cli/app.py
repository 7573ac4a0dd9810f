"""The command line: every command in one place."""

from pathlib import Path
from typing import Annotated

import typer

from maitred.cli import asking, batching, hearing, holding, keeping, keys, legacy, live, probing, telling
from maitred.cli.calling import KEY_FILE
from maitred.cli.exits import HELP

app = typer.Typer(
    name="maitred",
    epilog=HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(keeping.commands)
app.add_typer(asking.commands)
app.add_typer(holding.commands)
app.add_typer(hearing.commands)
app.add_typer(live.commands)
app.add_typer(probing.commands)
app.add_typer(telling.commands)
app.add_typer(batching.commands, name="batch")
app.add_typer(keys.commands)
app.add_typer(keys.keys, name="keys")
app.add_typer(legacy.commands, name="legacy")


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
) -> None:
    """Note the file with the API key for the command."""
    KEY_FILE.set(key_file)


def main() -> None:
    """Run the command that was typed."""
    app()
