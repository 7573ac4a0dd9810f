"""Scripts: steps that run one after the other in the same room, each where the end of the last one leads.

They were checked when the job was submitted, so that a run always comes to `output` or `abort`. What a step
leaves running ends with the step; what it leaves in the room is there for the next.
"""

import asyncio
from collections.abc import Callable
from graphlib import TopologicalSorter
from typing import Any

from maitred.core.output import Stream
from maitred.wire.flow import ABORT, OUTPUT, Flow, Node
from maitred.worker.outcome import STOPPED, Verdict
from maitred.worker.output import OnOutput
from maitred.worker.program import Ended, signal_name
from maitred.worker.responses import Response, Responses
from maitred.worker.room import Room

SCRIPT = "script"
_SHELL = ("/bin/sh", "-c")
_TESTS = {"exists": "-e", "file": "-f", "dir": "-d"}
_KINDS = {"exists": "there", "file": "a file", "dir": "a directory"}

Progress = Callable[[float, str], None]


class ScriptRun:
    """One run of a script; `say` hears what programs print, `progress` when a step begins and at the end."""

    def __init__(self, steps: list[Any], room: Room, say: OnOutput | None, progress: Progress | None) -> None:
        self._nodes = Flow(steps).nodes
        self._ahead = _longest_ways(self._nodes)
        self._room, self._say, self._progress = room, say, progress
        self._responses = Responses()

    async def run(self) -> Verdict:
        """Run the steps. Cancelling this ends the step that runs; what was answered is given all the same."""
        node, done = self._nodes[0], 0
        while True:
            if self._progress:
                self._progress(done / (done + self._ahead[node]), node.step.get("label") or node.name)
            end, why = await (self._run(node) if "cmd" in node.step else self._ask(node))
            to = node.ends[end] if end else None
            if to == OUTPUT:
                if self._progress:
                    self._progress(1.0, "complete")
                return Verdict("", "", self._shown())
            if to == ABORT:
                return Verdict(SCRIPT, f"{node.name} {why}", self._shown())
            # A step may end by itself in the moment in which it is stopped; then the next must not begin.
            if not isinstance(to, Node) or _is_cancelled():
                return Verdict(STOPPED, "it was stopped", self._shown())
            node, done = to, done + 1

    async def _run(self, node: Node) -> tuple[str | None, str]:
        """Run a command; give how its step ends, None if it was stopped, and that in words."""
        step = node.step
        response = Response({**_head(node), "cmd": step["cmd"]}, "stdout", "stderr")
        self._responses.add(response)

        def heard(stream: Stream, data: bytes) -> None:
            response.tails[stream].add(data)
            if self._say:
                self._say(stream, data)

        argv = [*_SHELL, step["cmd"]] if isinstance(step["cmd"], str) else step["cmd"]
        limit = step.get("timeout")
        try:
            ended = await self._room.run(
                argv, cwd=step.get("working_dir") or ".", limit=limit, on_output=heard
            )
        except (OSError, ValueError) as error:
            why = f"could not be started: {error}"
            heard("stderr", f"it {why}\n".encode(errors="backslashreplace"))
            response.facts |= {"status": None, "timed_out": False}
            self._responses.settle()
            return "on_fail", why
        response.facts |= {"status": ended.exit, "timed_out": ended.timed_out}
        if ended.hit:
            response.facts["hit"] = ended.hit
        self._responses.settle()
        if ended.stopped:
            return None, "was stopped"
        if ended.exit == 0 and not ended.timed_out and not ended.killed:
            return "on_complete", "is complete, and leads to abort"
        return "on_fail", _failure(ended, limit)

    async def _ask(self, node: Node) -> tuple[str | None, str]:
        """Look what a path is, with the eyes of a program in the room: a link leads where it leads there."""
        predicate, path = node.step["condition"]["predicate"], node.step["condition"]["path"]
        argv = [*_SHELL, f'test {_TESTS[predicate]} "$0"', f"./{path}"]
        ended = await self._room.run(argv)
        if ended.stopped:
            return None, "was stopped"
        holds = ended.exit == 0
        self._responses.add(Response({**_head(node), "condition": node.step["condition"], "holds": holds}))
        self._responses.settle()
        is_ = "is" if holds else "is not"
        return "on_true" if holds else "on_false", f"found that {path} {is_} {_KINDS[predicate]}"

    def _shown(self) -> dict[str, Any]:
        return {"responses": self._responses.shown()}


def _head(node: Node) -> dict[str, Any]:
    label = node.step.get("label")
    return {"step": node.place} if label is None else {"step": node.place, "label": label}


def _failure(ended: Ended, limit: float | None) -> str:
    if ended.killed and ended.hit:
        return f"was ended at its limit: {ended.hit}"
    if ended.timed_out:
        return f"took longer than {limit:g} s"
    if ended.exit < 0:
        return f"was ended by {signal_name(-ended.exit)}"
    return f"ended with exit status {ended.exit}"


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return bool(task and task.cancelling())


def _longest_ways(nodes: list[Node]) -> dict[Node, int]:
    """Give how many steps lie at most before the end from each step on, itself included."""
    after = {node: [other for _, other in node.next_steps()] for node in nodes}
    ways: dict[Node, int] = {}
    for node in TopologicalSorter(after).static_order():
        ways[node] = 1 + max((ways[other] for other in after[node]), default=0)
    return ways
