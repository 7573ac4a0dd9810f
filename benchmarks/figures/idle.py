"""Idling: what a worker with nothing to do costs, in commands sent to the store and in time of a core.

Commands are those that the worker's connections send; what a script calls inside the server is not
traffic.
"""

import contextlib
import os
import time
from pathlib import Path

from benchmarks.figures.figure import Figure, Reading
from benchmarks.scale import Scale
from benchmarks.stand import Stands
from benchmarks.systems.system import System

_SETTLE = 3.0


class Idle(Figure):
    name = "idle"
    every_round = False

    def applies_to(self, system: System) -> bool:
        return system.runs_jobs

    def measure(self, system: System, stands: Stands, scale: Scale) -> Reading:
        with system.at(stands) as stand:
            worker = stand.start(system.worker(stand))
            time.sleep(_SETTLE)
            start, cpu = time.monotonic(), _cpu_seconds(worker.pid)
            commands = stand.store.commands_received(scale.idle_seconds)
            cpu, seconds = _cpu_seconds(worker.pid) - cpu, time.monotonic() - start
        return {"commands_per_s": commands / seconds, "cpu_percent": 100 * cpu / seconds}

    def words(self, reading: Reading) -> str:
        return f"{reading['commands_per_s']:.1f} commands/s, {reading['cpu_percent']:.1f} % of a core"


def _cpu_seconds(group: int) -> float:
    """Add up the time on a processor of all threads of all processes in a group.

    The scheduler counts it in nanoseconds; the clock ticks of `stat` are too coarse for an idle process.
    """
    nanoseconds = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getpgid(int(process.name)) == group:
                for thread in process.glob("task/*/schedstat"):
                    nanoseconds += int(thread.read_text().split()[0])
    return nanoseconds / 1e9
