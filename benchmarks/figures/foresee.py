"""Foresight: how soon a server tells when a job will start, with many jobs waiting on a real store.

The probe is the server. It follows the store's events while jobs are submitted through its desk one after
another, each answer with its first estimate, and while the head of the line is started now and then: the time
until the next in line is foreseen as the first counts from before that call.
"""

import statistics

from benchmarks.figures.figure import Figure, Reading
from benchmarks.scale import Scale
from benchmarks.stand import Stands
from benchmarks.systems.system import System

LENGTH = 100_000
_SECONDS = 600.0
_SAMPLES = 400
_SLOTS = 4


class Foreseen(Figure):
    name = "foresee"
    every_round = False

    def applies_to(self, system: System) -> bool:
        return system.has_probe and system.figures is None

    def measure(self, system: System, stands: Stands, scale: Scale) -> Reading:
        length = max(crowd for crowd in scale.crowds if crowd <= LENGTH)
        with system.at(stands) as stand:
            probe = stand.start(system.probe(stand))
            fill = {"do": "fill", "jobs": length, "submitters": scale.submitters, "payload": 100}
            probe.ask(fill, _SECONDS)
            probe.ask({"do": "join", "slots": _SLOTS}, _SECONDS)
            stand.store.wait_until_flushed(_SECONDS)
            taken = probe.ask({"do": "foresee", "samples": _SAMPLES}, _SECONDS)
        submits, heads = sorted(taken["submit"]), sorted(taken["head"])
        return {
            f"submit_p50_{length}_ms": statistics.median(submits),
            f"submit_p99_{length}_ms": submits[len(submits) * 99 // 100],
            f"head_p50_{length}_ms": statistics.median(heads),
            f"head_max_{length}_ms": heads[-1],
        }

    def words(self, reading: Reading) -> str:
        return ", ".join(f"{name} {number:.3g}" for name, number in reading.items())
