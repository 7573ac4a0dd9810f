"""Waiting for the end of a job: its place is told as it changes, and its own exit status is the command's."""

from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from maitred.cli.following import follow
from maitred.cli.printing import holds_sentence, say
from maitred.client import Client
from maitred.wire import JobDocument


class Wait:
    """One job, put and followed to its end; `job` is the last that was heard of it, None before it is put."""

    def __init__(self, queue: str, *, quiet: bool = False) -> None:
        self.job: JobDocument | None = None
        self._queue = queue
        self._quiet = quiet

    async def put(self, client: Client, body: Mapping[str, Any]) -> JobDocument:
        """Put a job and give it when it has ended; `UnknownJob` if it is deleted before.

        It is this version that is followed, whatever is put under its key meanwhile.
        """
        told = self.job = await client.put(self._queue, body)
        self._tell(told)
        async with aclosing(follow(client, told)) as seen:
            async for job in seen:
                self.job = job
                if sentence(job) and _place(job) != _place(told):
                    self._tell(job)
                    told = job
        self.job = await client.job(self._queue, told.id, told.version)
        return self.job

    def _tell(self, job: JobDocument) -> None:
        if not self._quiet and (said := sentence(job)):
            say(f"{said}.", err=True)


def sentence(job: JobDocument) -> str | None:
    """Say where a job is; None if it is nowhere, or its place is not known yet."""
    if job.phase == "running":
        return f"{job.id} runs"
    if job.state == "held":
        return f"{job.id} is held: {holds_sentence(job.holds) or 'nobody says why'}"
    if job.phase == "waiting" and job.position is not None:
        reason = f": {job.waiting_for.text}" if job.waiting_for else ""
        return f"{job.id} is number {job.position} in line{reason}"
    return None


def exit_status(job: JobDocument) -> int:
    """Give the exit status of an ended job: 0 if it completed, else its last program's own, or 1 without one.

    A program that a signal ended has 128 and the signal's number, as shells have it.
    """
    if job.state == "completed":
        return 0
    ended_with = next((each.get("status", each.get("exit")) for each in reversed(programs_of(job))), None)
    if not isinstance(ended_with, int) or ended_with == 0:
        return 1
    return ended_with if ended_with > 0 else 128 - ended_with


def programs_of(job: JobDocument) -> list[dict[str, Any]]:
    """Give what a job's result tells of the programs that it ran: of a command, or of a script's steps."""
    result: Any = job.result
    if not isinstance(result, dict):
        return []
    if "script" in job.run:
        return [each for each in result.get("responses", []) if "cmd" in each]
    return [result] if "command" in job.run else []


def left_alone(job: JobDocument) -> str:
    """Say what becomes of a job that nobody waits for any more."""
    goes_on = {"waiting": "stays in line", "running": "goes on running", "held": "stays held"}.get(
        job.phase or job.state, "has ended"
    )
    again = f"`maitred watch {job.id}` looks on again, `maitred cancel {job.id}` ends it"
    return f"maitred: {job.id} {goes_on}; {again}."


def _place(job: JobDocument) -> tuple[object, ...]:
    """Give what is worth telling when it changes; a reason's text may count down seconds."""
    return job.phase, job.state, job.position, job.waiting_for and job.waiting_for.code
