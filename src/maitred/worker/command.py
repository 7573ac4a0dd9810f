"""Commands: a program with its files in a room of its own, and what became of it as an outcome."""

from collections.abc import Awaitable, Callable
from signal import Signals
from typing import Any

from maitred.core.output import Artifact
from maitred.service.fetch import FetchFailed
from maitred.worker.outcome import Outcome, completed, failed, interrupted
from maitred.worker.output import Say, Telling
from maitred.worker.program import Ended
from maitred.worker.room import Room
from maitred.worker.sandbox import Sandbox

Keep = Callable[[list[Artifact]], Awaitable[None]]


async def run_command(
    run: dict[str, Any],
    sandbox: Sandbox,
    *,
    say: Say | None = None,
    keep: Keep | None = None,
) -> Outcome:
    """Run a command to its end. Cancelling this stops it, and what it has printed is in the outcome.

    `say` hears what it prints while it runs, `keep` gets the files that the job asked to be kept.
    """
    try:
        async with sandbox.room(run.get("files")) as room:
            return await _run_in(room, run, sandbox, say, keep)
    except FetchFailed as error:
        return failed("files", f"a file could not be had: {error}")._replace(transient=error.again)
    except (OSError, ValueError) as error:
        return failed("command", f"it could not be started: {error}")


async def _run_in(
    room: Room,
    run: dict[str, Any],
    sandbox: Sandbox,
    say: Say | None,
    keep: Keep | None,
) -> Outcome:
    telling = Telling(say, sandbox.output_limit) if say else None
    ended = await room.run(run["command"], on_output=telling.heard if telling else None)
    if telling:
        telling.end()
    shown: dict[str, Any] = {"exit": ended.exit, "stdout": ended.stdout, "stderr": ended.stderr}
    if ended.hit:
        shown["hit"] = ended.hit
    if names := run.get("artifacts"):
        kept, refused = await room.collect(names, sandbox.artifact_limit)
        if keep:
            await keep(kept)
        if refused:
            shown["artifacts_refused"] = refused
    if ended.stopped:
        return interrupted(shown)
    if ended.exit or ended.killed:
        code, message = why_it_failed(ended)
        return failed(code, message, shown)
    return completed(shown)


_HIT = {
    "memory": "it used more memory than it may",
    "processes": "it reached the limit of its processes",
    "disk": "it wrote more than it may",
    "file-size": "it wrote a file that is larger than it may be",
    "cpu": "it used more processor time than it may",
}


def why_it_failed(ended: Ended) -> tuple[str, str]:
    """Name what ended a program as a code and a sentence."""
    if ended.hit:
        return ended.hit, f"{_HIT[ended.hit]}; {_status(ended.exit)}"
    return "exit", _status(ended.exit)


def _status(code: int) -> str:
    if code < 0:
        return f"it was ended by {Signals(-code).name}"
    return f"it ended with exit status {code}"
