"""Server time: what a submit and a start cost the store, with few and with many jobs waiting.

A queue is only as good as its slowest script on a long line. With jobs waiting over a thousand
submitters, a probe program submits some and then starts as many, so that the line's length stays; the
server's own count of microseconds in scripts is read before and after. Both are done call by call and in
calls of 64.

The probe is asked for `fill` (jobs, submitters, payload), `submit` (jobs, per_call), `join` (slots: a worker
comes and takes that many), `start` (jobs: each call finishes all that run and starts as many) and `leave`;
it answers each with any line. Only a system with such a probe is measured.
"""

import statistics

from benchmarks.figures.figure import Figure, Reading
from benchmarks.program import Message, Program
from benchmarks.scale import Scale
from benchmarks.stand import Stand, Stands
from benchmarks.systems.system import System

_SECONDS = 600.0
_PASSES = 3
# How many jobs a pass moves, by how many go in one call.
_JOBS = {1: 640, 64: 1_280}


class ServerTime(Figure):
    name = "server"
    every_round = False

    def applies_to(self, system: System) -> bool:
        return system.has_probe

    def measure(self, system: System, stands: Stands, scale: Scale) -> Reading:
        reading: Reading = {}
        with stands.open() as stand:
            probe = stand.start(system.probe(stand))
            waiting = 0
            for size in scale.waiting:
                fill = {"do": "fill", "jobs": size - waiting, "payload": scale.memory_payload}
                probe.ask({**fill, "submitters": scale.submitters}, _SECONDS)
                waiting = size
                for per_call, jobs in _JOBS.items():
                    submit, start = _passes(stand, probe, jobs, per_call)
                    reading[key("submit", size, per_call)] = submit
                    reading[key("start", size, per_call)] = start
        return reading

    def words(self, reading: Reading) -> str:
        return (
            f"{len(reading)} numbers, {min(reading.values()):.0f} to {max(reading.values()):.0f} µs per job"
        )


def key(verb: str, waiting: int, per_call: int) -> str:
    """Name one number of the reading, for example `submit_us_1000000_by_64`."""
    return f"{verb}_us_{waiting}_by_{per_call}"


def _passes(stand: Stand, probe: Program, jobs: int, per_call: int) -> tuple[float, float]:
    submits, starts = [], []
    probe.ask({"do": "join", "slots": per_call}, _SECONDS)
    for _ in range(_PASSES):
        submits.append(_cost(stand, probe, {"do": "submit", "jobs": jobs, "per_call": per_call}))
        starts.append(_cost(stand, probe, {"do": "start", "jobs": jobs}))
    probe.ask({"do": "leave"}, _SECONDS)
    return statistics.median(submits), statistics.median(starts)


def _cost(stand: Stand, probe: Program, request: Message) -> float:
    """Give the microseconds of script time per job that a request took."""
    before = stand.store.script_time()
    probe.ask(request, _SECONDS)
    return stand.store.script_time().since(before).microseconds / float(request["jobs"])
