"""Stages: what it costs the store to let a job go on to its next stage with the same worker.

Two queues stand in two stores: one of six stages and one of one, each with a line of the same length. A
worker of each ends what it has in hand, call after call: there the same jobs go on to their next stage (and
at the end the next ones start), here each end is a job's end and another one's start. The server's own
count of microseconds in scripts is divided by the number of ends; the stores take turns, as in
`server_time.py`.
"""

import contextlib
import statistics
from collections import defaultdict

from benchmarks.figures.figure import Figure, Reading
from benchmarks.figures.server_time import Line
from benchmarks.scale import Scale
from benchmarks.stand import Stands
from benchmarks.systems.system import System

_SECONDS = 600.0
_PASSES = 5
_WAITING = 4_000
_ENDS = {1: 600, 64: 1_920}


class Stages(Figure):
    name = "stages"
    every_round = False

    def applies_to(self, system: System) -> bool:
        return system.has_probe and system.figures is None

    def measure(self, system: System, stands: Stands, scale: Scale) -> Reading:
        taken: dict[str, list[float]] = defaultdict(list)
        with contextlib.ExitStack() as stack:
            lines = {}
            for name, stages in (("stage", 6), ("job", 1)):
                stand = stack.enter_context(system.at(stands))
                probe = stand.start(system.probe(stand))
                probe.ask({"do": "pipeline", "stages": stages}, _SECONDS)
                fill = {"jobs": _WAITING, "payload": scale.memory_payload, "submitters": scale.submitters}
                probe.ask({"do": "fill", **fill}, _SECONDS)
                stand.store.wait_until_flushed(_SECONDS)
                lines[name] = Line(_WAITING, stand.store, probe)
            for per_call, ends in _ENDS.items():
                for line in lines.values():
                    line.probe.ask({"do": "join", "slots": per_call}, _SECONDS)
                for _ in range(_PASSES):
                    for name, line in lines.items():
                        line.probe.ask({"do": "submit", "jobs": ends, "per_call": 200}, _SECONDS)
                        cost = line.cost({"do": "start", "jobs": ends})
                        taken[key(name, per_call)].append(cost)
                for line in lines.values():
                    line.probe.ask({"do": "leave"}, _SECONDS)
        return {name: statistics.median(costs) for name, costs in taken.items()}

    def words(self, reading: Reading) -> str:
        return ", ".join(f"{name} {cost:.0f} µs" for name, cost in reading.items())


def key(what: str, per_call: int) -> str:
    """Name the number for the end of a stage, or of a whole job, with so many in a call."""
    return f"{what}_us_by_{per_call}"
