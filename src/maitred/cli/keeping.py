"""The commands that keep the house open: up, serve and work; and doctor, which looks at the host."""

from typing import Annotated

import typer

from maitred.cli import options
from maitred.cli.exits import expected

commands = typer.Typer()

# What these commands run takes long to import, and those who only ask should not wait for it.


@commands.command()
@expected
def up(
    *,
    config: options.ConfigFile = None,
    data: options.Data = options.DEFAULT_DATA,
    host: options.Host = options.DEFAULT_HOST,
    port: options.Port = options.DEFAULT_PORT,
    slots: options.Slots = options.DEFAULT_SLOTS,
    app: options.App = None,
    require: options.Require = None,
    log_format: options.LogFormat = None,
) -> None:
    """Run everything in one place: the embedded store, the server, and a worker for each queue."""
    from maitred.cli import house  # noqa: PLC0415

    house.up(
        config,
        data,
        host=host,
        port=port,
        slots=slots,
        app=app,
        require=require,
        log_format=log_format,
    )


@commands.command()
@expected
def serve(
    *,
    config: options.ConfigFile = None,
    store: options.StoreUrl = None,
    data: options.Data = options.DEFAULT_DATA,
    host: options.Host = options.DEFAULT_HOST,
    port: options.Port = options.DEFAULT_PORT,
    log_format: options.LogFormat = None,
) -> None:
    """Run the server alone, on a store that is there."""
    from maitred.cli import house  # noqa: PLC0415

    house.serve(config, data, store=store, host=host, port=port, log_format=log_format)


@commands.command()
@expected
def work(
    *,
    app: options.App = None,
    slots: options.Slots = options.DEFAULT_SLOTS,
    queue: Annotated[list[str] | None, typer.Option("--queue", "-q", help="Only these queues.")] = None,
    config: options.ConfigFile = None,
    store: options.StoreUrl = None,
    data: options.Data = options.DEFAULT_DATA,
    health_port: options.HealthPort = None,
    require: options.Require = None,
    log_format: options.LogFormat = None,
) -> None:
    """Run workers alone: one for each queue, for commands and for the handlers of --app."""
    from maitred.cli import house  # noqa: PLC0415

    house.work(
        config,
        data,
        store=store,
        app=app,
        slots=slots,
        queues=queue or [],
        health_port=health_port,
        require=require,
        log_format=log_format,
    )


@commands.command()
@expected
def doctor(
    *,
    config: options.ConfigFile = None,
    store: options.StoreUrl = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Tell what this host can enforce, how to get the rest, and whether the store answers.

    Ends with 1 if something is lacking that the settings require, or if the store does not answer.
    """
    from maitred.cli import doctor as practice  # noqa: PLC0415

    raise typer.Exit(practice.examine(config, data, store=store, as_json=as_json))
