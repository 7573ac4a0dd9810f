"""Server time: what a submit and a start cost the store, with few and with many jobs waiting.

A queue is only as good as its slowest script on a long line. There is a store for each length of line, its
jobs spread over a thousand submitters. In each a probe program submits some jobs and then starts as many, so
that the length stays, and the server's own count of microseconds in scripts is read before and after; call
by call, and in calls of 64. The stores take turns, so that a slow moment of the machine falls on all lengths
alike and the growth from one to the next is the line's.

The probe is asked for `fill` (jobs, submitters, payload), `submit` (jobs, per_call), `join` (slots: a worker
comes and takes that many), `start` (jobs: each call finishes all that run and starts as many) and `leave`;
it answers each with any line. Only a system with such a probe is measured.
"""

import contextlib
import statistics
from collections import defaultdict
from dataclasses import dataclass

from benchmarks.figures.figure import Figure, Reading
from benchmarks.program import Message, Program
from benchmarks.scale import Scale
from benchmarks.stand import Stands
from benchmarks.store import Store
from benchmarks.systems.system import System

_SECONDS = 600.0
_PASSES = 5
# How many jobs a pass moves, by how many go in one call.
_JOBS = {1: 640, 64: 1_280}


@dataclass(frozen=True)
class Line:
    """A store with a line of some length, and the probe beside it."""

    length: int
    store: Store
    probe: Program

    def cost(self, request: Message) -> float:
        """Give the microseconds of script time per job that a request took."""
        before = self.store.script_time()
        self.probe.ask(request, _SECONDS)
        return self.store.script_time().since(before).microseconds / float(request["jobs"])


class ServerTime(Figure):
    name = "server"
    every_round = False

    def applies_to(self, system: System) -> bool:
        return system.has_probe

    def measure(self, system: System, stands: Stands, scale: Scale) -> Reading:
        taken: dict[str, list[float]] = defaultdict(list)
        with contextlib.ExitStack() as stack:
            lines = [_filled(stack, system, stands, scale, length) for length in scale.waiting]
            for per_call, jobs in _JOBS.items():
                for line in lines:
                    line.probe.ask({"do": "join", "slots": per_call}, _SECONDS)
                for _ in range(_PASSES):
                    for line in lines:
                        submit = line.cost({"do": "submit", "jobs": jobs, "per_call": per_call})
                        taken[key("submit", line.length, per_call)].append(submit)
                        start = line.cost({"do": "start", "jobs": jobs})
                        taken[key("start", line.length, per_call)].append(start)
                for line in lines:
                    line.probe.ask({"do": "leave"}, _SECONDS)
        return {name: statistics.median(costs) for name, costs in taken.items()}

    def words(self, reading: Reading) -> str:
        return (
            f"{len(reading)} numbers, {min(reading.values()):.0f} to {max(reading.values()):.0f} µs per job"
        )


def key(verb: str, waiting: int, per_call: int) -> str:
    """Name one number of the reading, for example `submit_us_1000000_by_64`."""
    return f"{verb}_us_{waiting}_by_{per_call}"


def _filled(stack: contextlib.ExitStack, system: System, stands: Stands, scale: Scale, length: int) -> Line:
    stand = stack.enter_context(system.at(stands))
    probe = stand.start(system.probe(stand))
    fill = {"do": "fill", "jobs": length, "payload": scale.memory_payload, "submitters": scale.submitters}
    probe.ask(fill, _SECONDS)
    stand.store.wait_until_flushed(_SECONDS)
    return Line(length, stand.store, probe)
