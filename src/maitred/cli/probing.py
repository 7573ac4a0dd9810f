"""The command for a probe: health."""

import httpx
import typer

from maitred.cli import options
from maitred.cli.calling import Server
from maitred.cli.command import Commands
from maitred.cli.printing import print_json
from maitred.errors import ServerUnreachable

PATIENCE = 5.0

commands = Commands("Running it")


@commands.add("maitred health", "maitred health --server 127.0.0.1:7501")
def health(at: Server, *, as_json: options.Json = False) -> None:
    """Tell whether a server, or a worker with --health-port, can serve; end with 0 if it can, else 1."""
    address = at.address()
    try:
        answer = httpx.get(f"{address}/readyz", timeout=PATIENCE, trust_env=False)
        told = answer.json()
        ready, said = answer.is_success, told.get("detail") or told["status"]
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, LookupError, AttributeError) as error:
        raise ServerUnreachable(f"No answer from {address}: {str(error) or type(error).__name__}.") from None
    if as_json:
        print_json(told)
    else:
        typer.echo(said)
    raise typer.Exit(0 if ready else 1)
