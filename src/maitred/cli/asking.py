"""The commands that ask a server.

Of a job: submit, show, release, delay, shorten, rm, cancel. Of a queue: line, pause, check.
"""

import json
import secrets
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from maitred.cli import options
from maitred.cli.calling import ask
from maitred.cli.exits import expected
from maitred.cli.given import file_beside, named, pair, script_run, seconds, submitter_of
from maitred.cli.printing import print_check, print_job, print_line, print_queue, say
from maitred.cli.waiting import INTERRUPTED, Wait, exit_status, left_alone
from maitred.client import Client
from maitred.errors import ConfigError
from maitred.wire import JobDocument, OthersJob, Page, QueueDocument

commands = typer.Typer()


@commands.command()
@expected
def submit(
    command: Annotated[
        list[str] | None, typer.Argument(help="After --, a program and its arguments.")
    ] = None,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    key: Annotated[str | None, typer.Option("--key", help="The job's key; else a random one.")] = None,
    submitter: Annotated[
        str | None, typer.Option("--as", help="user:ID or team:ID; else your login name.")
    ] = None,
    handler: Annotated[str | None, typer.Option("--handler", help="A handler instead of a program.")] = None,
    arg: Annotated[
        list[str] | None, typer.Option("--arg", help="name=value for the handler; JSON, or else text.")
    ] = None,
    script: Annotated[
        str | None,
        typer.Option("--script", help="Steps instead of one program: JSON or TOML; - is JSON from input."),
    ] = None,
    file: Annotated[
        list[Path] | None, typer.Option("--file", "-f", help="A file to lay beside the program.")
    ] = None,
    artifact: Annotated[
        list[str] | None,
        typer.Option("--artifact", help="A file of the program's to keep when it has ended."),
    ] = None,
    delay: Annotated[float | None, typer.Option("--delay", help="Seconds until it may start.")] = None,
    priority: Annotated[int | None, typer.Option("--priority", help="0..99, lower first.")] = None,
    immediate: Annotated[bool, typer.Option("--immediate", help="Before everything scheduled.")] = False,
    bulk: Annotated[bool, typer.Option("--bulk", help="Yield to all others.")] = False,
    class_: Annotated[
        str | None, typer.Option("--class", help="One of the queue's duration classes.")
    ] = None,
    duration: Annotated[
        str | None, typer.Option("--duration", help="How long it may run, such as 5s or 2m.")
    ] = None,
    metadata: Annotated[
        list[str] | None, typer.Option("--metadata", help="name=text, by which jobs can be listed.")
    ] = None,
    expires_at: Annotated[
        str | None, typer.Option("--expires-at", help="A time with its zone; waiting ends then.")
    ] = None,
    abandon_after: Annotated[
        str | None,
        typer.Option("--abandon-after", help="Cancel it when nobody watched it for so long, such as 5m."),
    ] = None,
    response_url: Annotated[
        str | None, typer.Option("--response-url", help="An http address; with the key, the job's identity.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Until it has ended; then end with its exit status.")
    ] = False,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Submit a program, a script or a handler's job; show its place, or with --wait what became of it."""
    given = {
        "key": key if key is not None else secrets.token_hex(8),
        "submitter": submitter_of("--as", submitter),
        "run": _run(command or [], handler, arg or [], script, files=file or [], artifacts=artifact or []),
        "delay": delay,
        "priority": priority,
        "immediate": immediate or None,
        "bulk": bulk or None,
        "class": class_,
        "duration": None if duration is None else seconds("--duration", duration),
        "metadata": dict(named("--metadata", text) for text in metadata or []) or None,
        "expires_at": expires_at,
        "abandon_after": None if abandon_after is None else seconds("--abandon-after", abandon_after),
        "response_url": response_url,
    }
    body = {name: value for name, value in given.items() if value is not None}
    if wait:
        _submit_and_wait(server, data, queue, body, as_json=as_json)
    else:
        print_job(ask(server, data, lambda client: client.put(queue, body)), as_json=as_json)


def _submit_and_wait(
    server: str | None, data: Path, queue: str, body: dict[str, Any], *, as_json: bool
) -> NoReturn:
    waited = Wait(queue, quiet=as_json)
    try:
        ended = ask(server, data, lambda client: waited.put(client, body))
    except KeyboardInterrupt:
        if waited.job is None:
            raise
        say(left_alone(waited.job), err=True)
        raise typer.Exit(INTERRUPTED) from None
    print_job(ended, as_json=as_json)
    raise typer.Exit(exit_status(ended))


@commands.command()
@expected
def show(
    id: options.JobId,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    version: Annotated[int | None, typer.Option("--version", min=1, help="An older version.")] = None,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Show a job: where it is, why it waits, what became of it."""
    print_job(ask(server, data, lambda client: client.job(queue, id, version)), as_json=as_json)


@commands.command()
@expected
def line(
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=500, help="How many at most.")] = 20,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Show the queue in one line, and who waits, in line order."""

    async def look(client: Client) -> tuple[Page[JobDocument | OthersJob], QueueDocument]:
        return await client.line(queue, limit), await client.queue(queue)

    print_line(*ask(server, data, look), as_json=as_json)


@commands.command()
@expected
def release(
    id: options.JobId,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    nonce: options.Nonce = None,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Move a waiting job to the front."""
    print_job(ask(server, data, lambda client: client.release(queue, id, nonce)), as_json=as_json)


@commands.command()
@expected
def delay(
    id: options.JobId,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    nonce: options.Nonce = None,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Move a waiting job behind all others of its band and priority."""
    print_job(ask(server, data, lambda client: client.delay(queue, id, nonce)), as_json=as_json)


@commands.command()
@expected
def shorten(
    id: options.JobId,
    duration: Annotated[str, typer.Argument(metavar="DURATION", help="Such as 5s or 2m, from its start on.")],
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Let a waiting or running job take only so long; it stops if it has run longer already."""
    length = seconds("DURATION", duration)
    print_job(ask(server, data, lambda client: client.shorten(queue, id, length)), as_json=as_json)


@commands.command("rm")
@expected
def remove(
    id: options.JobId,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Delete a job in any state, with all its versions."""
    ask(server, data, lambda client: client.remove(queue, id))
    typer.echo(json.dumps({"deleted": id}) if as_json else f"Deleted {id}.")


@commands.command()
@expected
def cancel(
    id: options.JobId,
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    reason: options.Reason = "",
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """End a job that has not ended, and keep its record."""
    print_job(ask(server, data, lambda client: client.cancel(queue, id, reason)), as_json=as_json)


@commands.command()
@expected
def pause(
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    reason: options.Reason = "",
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Let a queue start nothing more; it goes on to accept."""
    print_queue(ask(server, data, lambda client: client.pause(queue, reason)), as_json=as_json)


@commands.command()
@expected
def check(
    *,
    queue: options.Queue = options.DEFAULT_QUEUE,
    repair: Annotated[bool, typer.Option("--repair", help="Put right what can be.")] = False,
    server: options.Server = None,
    data: options.Data = options.DEFAULT_DATA,
    as_json: options.Json = False,
) -> None:
    """Look for broken rules in a queue's store; ends with 1 if one stays broken."""
    found = ask(server, data, lambda client: client.check(queue, repair=repair))
    print_check(found, as_json=as_json)
    if not all(violation.repaired for violation in found.violations):
        raise typer.Exit(1)


def _run(
    command: list[str],
    handler: str | None,
    args: list[str],
    script: str | None,
    *,
    files: list[Path],
    artifacts: list[str],
) -> dict[str, Any]:
    if handler is not None and (command or script or files or artifacts):
        raise ConfigError("A job is a handler's or a program's, not both.")
    if handler is not None:
        return {"handler": handler, "args": dict(pair(arg) for arg in args)}
    if args:
        raise ConfigError("--arg goes with --handler; a program's arguments stand after --.")
    if command and script:
        raise ConfigError("A job is one program or a script, not both.")
    if not command and script is None:
        raise ConfigError("Say what to run: --handler NAME, --script FILE, or a program after --.")
    run: dict[str, Any] = {"command": command} if script is None else script_run(script)
    laid = dict(file_beside(path) for path in files)
    # What is wrong with files that a script brings itself is the server's to say.
    run |= {"files": {**run.get("files", {}), **laid}} if laid else {}
    return run | ({"artifacts": [*run.get("artifacts", []), *artifacts]} if artifacts else {})
