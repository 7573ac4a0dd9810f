"""The order of a run: rounds, in each round the figures, for each figure the systems in turn.

The systems of one figure are measured right after each other, and every round begins with another one, so
that a slow minute of the machine falls on all alike. What cannot be measured is said and left out; the
rest goes on.
"""

import sys
from collections.abc import Sequence

from benchmarks.errors import BenchmarkError
from benchmarks.figures import Figure
from benchmarks.results import Results, Subject
from benchmarks.scale import Scale
from benchmarks.stand import Stands
from benchmarks.systems import System


def run(
    systems: Sequence[System], figures: Sequence[Figure], stands: Stands, scale: Scale, rounds: int
) -> Results:
    """Measure all figures of all systems. Raises only if not even a store can be started."""
    results = Results(scale, rounds)
    with stands.open() as stand:
        results.server, results.allocator = stand.store.server(), stand.store.allocator
    _say(f"{results.server}, allocator {results.allocator}, append-only file everysec")
    ready = [system for system in systems if _prepare(system, results)]
    for number in range(rounds):
        for figure in figures:
            if number and not figure.every_round:
                continue
            for system in rotated(ready, number):
                if figure.applies_to(system) and (system.figures is None or figure.name in system.figures):
                    _take(figure, system, stands, results, number)
    return results


def rotated(systems: Sequence[System], by: int) -> list[System]:
    """Begin with another system in every round: A B C, B C A, C A B."""
    start = by % len(systems) if systems else 0
    return [*systems[start:], *systems[:start]]


def _prepare(system: System, results: Results) -> bool:
    try:
        system.prepare()
    except BenchmarkError as error:
        results.failures.append(str(error))
        _say(str(error).partition("\n")[0])
        return False
    results.subjects[system.name] = Subject(system.version(), system.settings)
    return True


def _take(figure: Figure, system: System, stands: Stands, results: Results, number: int) -> None:
    where = f"round {number + 1}/{results.rounds}  {figure.name:<8} {system.name:<9}"
    try:
        reading = figure.measure(system, stands, results.scale)
    except BenchmarkError as error:
        results.failures.append(f"{system.name}, {figure.name}: {error}")
        _say(f"{where} failed")
        return
    results.add(system.name, figure.name, reading)
    _say(f"{where} {figure.words(reading)}")


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
