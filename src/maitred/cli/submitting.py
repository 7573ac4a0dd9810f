"""The commands that submit jobs: one, with all that can be said of it, or many from a file."""

import secrets
from typing import Annotated, Any, NoReturn

import typer

from maitred.cli import options
from maitred.cli.batch_printing import answers_document, any_refused, print_answers
from maitred.cli.calling import InQueue
from maitred.cli.command import Commands
from maitred.cli.exits import INTERRUPTED
from maitred.cli.given import (
    files_beside,
    job_bodies,
    named,
    pair,
    script_run,
    seconds,
    submitter_of,
)
from maitred.cli.printing import print_job, say
from maitred.cli.waiting import Wait, exit_status, left_alone
from maitred.errors import ConfigError

commands = Commands("Jobs")


@commands.add(
    "maitred submit -- echo hello",
    "maitred submit --wait -f main.py -f data -- python3 main.py data/points.csv",
    "maitred submit --handler grade --arg essay=7 --as user:ada --key essay-7",
    "seq 9 | maitred submit -f numbers=- --duration 5s -- wc -l numbers",
)
def submit(
    where: InQueue,
    command: Annotated[
        list[str] | None, typer.Argument(help="After --, a program and its arguments.")
    ] = None,
    *,
    key: Annotated[str | None, typer.Option("--key", help="The job's key; else a random one.")] = None,
    submitter: options.Submitter = None,
    handler: options.Handler = None,
    arg: options.Args = None,
    script: Annotated[
        str | None,
        typer.Option("--script", help="Steps instead of one program: JSON or TOML; - is JSON from input."),
    ] = None,
    file: options.Files = None,
    artifact: Annotated[
        list[str] | None,
        typer.Option("--artifact", help="A file of the program's to keep when it has ended."),
    ] = None,
    delay: Annotated[float | None, typer.Option("--delay", help="Seconds until it may start.")] = None,
    priority: options.Priority = None,
    immediate: Annotated[bool, typer.Option("--immediate", help="Before everything scheduled.")] = False,
    bulk: options.Bulk = False,
    class_: options.Class = None,
    duration: options.Duration = None,
    metadata: Annotated[
        list[str] | None, typer.Option("--metadata", help="name=text, by which jobs can be listed.")
    ] = None,
    profile: Annotated[str | None, typer.Option("--profile", help="A profile of the queue.")] = None,
    batch: Annotated[str | None, typer.Option("--batch", help="An open batch that it belongs to.")] = None,
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
        "profile_name": profile,
        "batch": batch,
        "expires_at": expires_at,
        "abandon_after": None if abandon_after is None else seconds("--abandon-after", abandon_after),
        "response_url": response_url,
    }
    body = {name: value for name, value in given.items() if value is not None}
    if wait:
        _submit_and_wait(where, body)
    else:
        where.tell(lambda client: client.put(where.queue, body), print_job)


def _submit_and_wait(where: InQueue, body: dict[str, Any]) -> NoReturn:
    waited = Wait(where.queue, quiet=where.as_json)
    try:
        ended = where.ask(lambda client: waited.put(client, body))
    except KeyboardInterrupt:
        if waited.job is None:
            raise
        say(left_alone(waited.job), err=True)
        raise typer.Exit(INTERRUPTED) from None
    where.print(ended, print_job)
    raise typer.Exit(exit_status(ended))


@commands.add("maitred submit-many jobs.json", "make-jobs | maitred submit-many - --json", name="submit-many")
def submit_many(
    where: InQueue,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="Bodies of jobs in JSON, as a list or one on each line; - is the input."
        ),
    ],
) -> None:
    """Submit all jobs of a file, a thousand at once, each by itself. Ends with 1 if one was refused."""
    bodies = job_bodies(file)
    answers = where.ask(lambda client: client.submit_many(where.queue, bodies))
    where.print(answers_document(answers), lambda _: print_answers(where.queue, answers))
    if any_refused(answers):
        raise typer.Exit(1)


def _run(
    command: list[str],
    handler: str | None,
    args: list[str],
    script: str | None,
    *,
    files: list[str],
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
    laid = files_beside(files)
    # What is wrong with files that a script brings itself is the server's to say.
    run |= {"files": {**run.get("files", {}), **laid}} if laid else {}
    return run | ({"artifacts": [*run.get("artifacts", []), *artifacts]} if artifacts else {})
