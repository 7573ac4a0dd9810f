"""Commands: a program with its files in a room of its own, and what became of it as an outcome."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from maitred.core.output import Artifact
from maitred.service.fetch import FetchFailed
from maitred.worker.outcome import STOPPED, Outcome, Verdict, completed, failed, interrupted
from maitred.worker.output import Say, Telling
from maitred.worker.program import Ended, signal_name
from maitred.worker.room import Room
from maitred.worker.sandbox import Sandbox
from maitred.worker.script import Progress, ScriptRun

Keep = Callable[[list[Artifact]], Awaitable[None]]


async def run_command(
    run: dict[str, Any],
    sandbox: Sandbox,
    *,
    say: Say | None = None,
    keep: Keep | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Run a command or a script to its end. Cancelling this stops it; what it has printed is in the outcome.

    `say` hears what it prints while it runs, `keep` gets the files that the job asked to be kept,
    `progress` hears which step of a script begins.
    """
    try:
        async with sandbox.room(run.get("files")) as room:
            return await _run_in(room, run, sandbox, say=say, keep=keep, progress=progress)
    except FetchFailed as error:
        return failed("files", f"a file could not be had: {error}")._replace(transient=error.again)
    except (OSError, ValueError) as error:
        return failed("command", f"it could not be started: {error}")


async def _run_in(
    room: Room,
    run: dict[str, Any],
    sandbox: Sandbox,
    *,
    say: Say | None,
    keep: Keep | None,
    progress: Progress | None,
) -> Outcome:
    telling = Telling(say, sandbox.output_limit) if say else None
    heard = telling.heard if telling else None
    if "script" in run:
        verdict = await ScriptRun(run["script"], room, heard, progress).run()
    else:
        verdict = _verdict(await room.run(run["command"], on_output=heard))
    if telling:
        telling.end()
    shown = verdict.shown
    if names := run.get("artifacts"):
        try:
            kept, refused = await room.collect(names, sandbox.artifact_limit)
            if keep:
                await keep(kept)
        except asyncio.CancelledError:
            return interrupted(shown)
        if refused:
            shown["artifacts_refused"] = refused
    return failed(verdict.code, verdict.message, shown) if verdict.code else completed(shown)


def _verdict(ended: Ended) -> Verdict:
    shown: dict[str, Any] = {"exit": ended.exit, "stdout": ended.stdout, "stderr": ended.stderr}
    if ended.hit:
        shown["hit"] = ended.hit
    if ended.stopped:
        return Verdict(STOPPED, "it was stopped", shown)
    if ended.exit or ended.killed:
        return Verdict(*why_it_failed(ended), shown)
    return Verdict("", "", shown)


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
        return f"it was ended by {signal_name(-code)}"
    return f"it ended with exit status {code}"
