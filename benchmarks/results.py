"""All readings of a run, their medians, and their form as JSON.

A median over the rounds is what the tables show. The file keeps every round's reading beside it, so that
anyone can see how far they lay apart, and names what the figures depend on: the server, its allocator,
the versions, the sizes.
"""

import dataclasses
import json
import os
import platform
import statistics
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.figures import Reading
from benchmarks.scale import Scale

Spread = tuple[float, float]


@dataclass(frozen=True)
class Subject:
    """A system as it was measured."""

    version: str
    settings: str


@dataclass
class Results:
    """What a run has brought so far."""

    scale: Scale
    rounds: int
    server: str = "unknown"
    allocator: str = "unknown"
    subjects: dict[str, Subject] = field(default_factory=dict)
    readings: dict[str, dict[str, list[Reading]]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def add(self, system: str, figure: str, reading: Reading) -> None:
        self.readings.setdefault(system, {}).setdefault(figure, []).append(reading)

    def median(self, system: str, figure: str, number: str) -> float | None:
        """Give the median over the rounds, or None if there is no reading."""
        found = self._rounds(system, figure, number)
        return statistics.median(found) if found else None

    def ratio(self, system: str, other: str, figure: str, number: str) -> float | None:
        """Give a system's median as a multiple of another's, or None if one is missing."""
        return quotient(self.median(system, figure, number), self.median(other, figure, number))

    def spread(self, system: str, figure: str, number: str, *, over: str | None = None) -> Spread | None:
        """Give the least and the greatest reading of all rounds, `over` another system's of the same round.

        None with fewer than two rounds, or if one of them failed and the rounds no longer pair up.
        """
        mine = self._rounds(system, figure, number)
        others = [1.0] * len(mine) if over is None else self._rounds(over, figure, number)
        if len(mine) < 2 or len(mine) != len(others):
            return None
        ratios = [one / other for one, other in zip(mine, others, strict=True)]
        return min(ratios), max(ratios)

    def write(self, path: Path, targets: list[dict[str, Any]]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self._as_json(targets), indent=2, ensure_ascii=False) + "\n", "utf-8")

    def _as_json(self, targets: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "host": {
                "cores": os.cpu_count(),
                "system": f"{platform.system()} {platform.machine()}",
                "python": platform.python_version(),
            },
            "store": {
                "server": self.server,
                "allocator": self.allocator,
                "persistence": "append-only file, everysec",
                "connection": "unix socket",
            },
            "rounds": self.rounds,
            "scale": dataclasses.asdict(self.scale),
            "systems": {
                name: {**dataclasses.asdict(subject), "figures": self._figures(name)}
                for name, subject in self.subjects.items()
            },
            "ratios": {
                f"drain_to_{other}": {
                    name: ratio
                    for name in self.subjects
                    if (ratio := self.ratio(name, other, "drain", "jobs_per_s")) is not None
                }
                for other in ("bullmq", "dramatiq")
            },
            "targets": targets,
            "failures": self.failures,
        }

    def _rounds(self, system: str, figure: str, number: str) -> list[float]:
        return [each[number] for each in self.readings.get(system, {}).get(figure, []) if number in each]

    def _figures(self, system: str) -> dict[str, Any]:
        return {
            figure: {
                "median": {number: self.median(system, figure, number) for number in readings[0]},
                "rounds": readings,
            }
            for figure, readings in self.readings.get(system, {}).items()
        }


def quotient(one: float | None, other: float | None) -> float | None:
    """Divide, if both are there."""
    return None if one is None or not other else one / other
