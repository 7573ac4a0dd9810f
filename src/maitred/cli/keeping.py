"""The commands that keep the house open: up, serve and work; and doctor, which looks at the host."""

import typer

from maitred.cli.command import Commands
from maitred.cli.opening import AtStore, Serve, Up, Work

commands = Commands("Running it")

# What these commands run takes long to import, and those who only ask should not wait for it.


@commands.add(
    "maitred up",
    "maitred up --app grading --slots 4 --port 8080",
    "maitred up --data /var/lib/maitred --log-format json",
)
def up(given: Up) -> None:
    """Run everything in one place: the embedded store, the server, and a worker for each queue."""
    from maitred.cli import house  # noqa: PLC0415

    house.up(given)


@commands.add(
    "maitred serve --store valkey://127.0.0.1:6379/0", "maitred serve --config maitred.toml --port 0"
)
def serve(given: Serve) -> None:
    """Run the server alone, on a store that is there."""
    from maitred.cli import house  # noqa: PLC0415

    house.serve(given)


@commands.add(
    "maitred work --app grading --slots 8 --store valkey://127.0.0.1:6379/0",
    "maitred work --queue render --health-port 7501 --require network,pids",
)
def work(given: Work) -> None:
    """Run workers alone: one for each queue, for commands and for the handlers of --app."""
    from maitred.cli import house  # noqa: PLC0415

    house.work(given)


@commands.add("maitred doctor", "maitred doctor --store valkey://127.0.0.1:6379/0 --json")
def doctor(given: AtStore) -> None:
    """Tell what this host can enforce, how to get the rest, and whether the store answers.

    Ends with 1 if something is lacking that the settings require, or if the store does not answer.
    """
    from maitred.cli import doctor as practice  # noqa: PLC0415

    raise typer.Exit(practice.examine(given))
