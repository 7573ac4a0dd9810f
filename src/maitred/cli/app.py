"""The command line: every command in one place."""

import typer

from maitred.cli import asking, batching, hearing, holding, keeping, legacy, live, probing, telling
from maitred.cli.exits import HELP

app = typer.Typer(
    name="maitred",
    help="A fair job queue: a place in line for everyone, an honest wait, and nobody lost.",
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
app.add_typer(telling.keys, name="keys")
app.add_typer(legacy.commands, name="legacy")


def main() -> None:
    """Run the command that was typed."""
    app()
