"""HTTP: how many jobs a server takes in a second, beside a bare endpoint on the same server software.

Both servers are one process each, the bare one reads the same body and answers with it. A client with some
connections asks them in turns, a pass at each, so that a slow moment of the machine falls on both. Then the
jobs come in lists of a thousand.
"""

import statistics

from benchmarks.figures.figure import Figure, Reading
from benchmarks.program import Program
from benchmarks.scale import Scale
from benchmarks.stand import Stands
from benchmarks.systems.system import System, python_program

_SECONDS = 300.0
_PASSES = 5
_CONNECTIONS = 64
_PER_CALL = 1_000


class Http(Figure):
    name = "http"

    def applies_to(self, system: System) -> bool:
        return system.has_probe and system.figures is None

    def measure(self, system: System, stands: Stands, scale: Scale) -> Reading:
        with system.at(stands) as stand:
            servers = {name: stand.start(python_program("web", name, stand)) for name in ("maitred", "bare")}
            client = stand.start(python_program("web", "client", stand))
            for server in servers.values():
                _rate(client, server, "single", scale.warm_jobs)
            taken: dict[str, list[float]] = {name: [] for name in servers}
            for _ in range(_PASSES):
                for name, server in servers.items():
                    taken[name].append(_rate(client, server, "single", scale.single_jobs))
            bulk = _rate(client, servers["maitred"], "bulk", scale.jobs, per_call=_PER_CALL)
        return {
            "submit_per_s": statistics.median(taken["maitred"]),
            "bare_per_s": statistics.median(taken["bare"]),
            "bulk_per_s": bulk,
        }

    def words(self, reading: Reading) -> str:
        return ", ".join(f"{name} {number:.0f}" for name, number in reading.items())


def _rate(client: Program, server: Program, way: str, jobs: int, **more: int) -> float:
    asked = {"do": way, "port": server.ready["port"], "connections": _CONNECTIONS, "jobs": jobs, **more}
    return float(jobs / client.ask(asked, _SECONDS)["nanoseconds"] * 1e9)
