"""The command for a probe: health."""

import json

import httpx
import typer

from maitred.cli import options
from maitred.cli.address import find_server
from maitred.cli.exits import expected
from maitred.errors import ServerUnreachable

PATIENCE = 5.0

commands = typer.Typer()


@commands.command()
@expected
def health(
    *,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Tell whether a server, or a worker with --health-port, can serve; end with 0 if it can, else 1."""
    address = find_server(server, data)
    try:
        answer = httpx.get(f"{address}/readyz", timeout=PATIENCE, trust_env=False)
        told = answer.json()
        ready, said = answer.is_success, told.get("detail") or told["status"]
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, LookupError, AttributeError) as error:
        raise ServerUnreachable(f"No answer from {address}: {str(error) or type(error).__name__}.") from None
    typer.echo(json.dumps(told) if as_json else said)
    raise typer.Exit(0 if ready else 1)
