"""The end of a deadline, as a course sees it, with numbers that are given and not drawn.

304 submitters, 2 947 submissions, 45 of them from the heaviest; a rate that doubles every hour for four
hours; run times with a mean of 32 s, a median of 26 s and a maximum of 111 s. A seed decides who comes when
and whose run takes how long, but none of these numbers: they are the same for every seed.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import NormalDist

from benchmarks.simulation.chance import MILLISECOND, Chance, microseconds
from benchmarks.simulation.visit import Arrival
from maitred.core.classes import DurationClass, level_for

SUBMITTERS = 304
SUBMISSIONS = 2_947
HEAVIEST = 45
HOURS = 4
MEAN, MEDIAN, LONGEST = 32_000, 26_000, 111_000  # milliseconds
ELASTIC_PART = 0.3


def deadline_arrivals(seed: int, classes: Sequence[DurationClass]) -> Iterator[Arrival]:
    """Give the submissions in the order in which they come."""
    chance = Chance(seed, "deadline")
    runs = chance.shuffled(run_times())
    for number, (who, run) in enumerate(zip(_people(chance), runs, strict=True)):
        level = level_for(classes, run * MILLISECOND)
        yield Arrival(
            microseconds(_moment((number + chance.part()) / SUBMISSIONS)),
            f"job-{number}",
            f"student-{who}",
            run * MILLISECOND,
            level=None if chance.part() < ELASTIC_PART else level,
        )


def _people(chance: Chance) -> list[int]:
    """Give who comes, in order: each spreads its submissions as all of them together are spread."""
    turns = [
        ((turn + chance.part()) / count, who)
        for who, count in enumerate(submissions_each())
        for turn in range(count)
    ]
    return [who for _, who in sorted(turns)]


def _moment(part: float) -> float:
    """Give the second by which this part of all submissions has come, with a rate that doubles every hour."""
    return 3_600 * math.log2(1 + part * (2**HOURS - 1))


def submissions_each() -> list[int]:
    """Give how many each submitter sends, the heaviest first: most send few, and one more than all others."""
    others = SUBMITTERS - 1
    weights = [-math.log((rank + 0.5) / others) for rank in range(others)]

    def counts(scale: float) -> list[int]:
        return [min(HEAVIEST - 1, 1 + math.floor(scale * weight)) for weight in weights]

    wanted = SUBMISSIONS - HEAVIEST
    found = counts(_solve(lambda scale: sum(counts(scale)), wanted, 0.0, 100.0))
    for at in range(wanted - sum(found)):
        found[others - 1 - at] += 1
    return [HEAVIEST, *found]


def run_times() -> list[int]:
    """Give the run times in milliseconds, shortest first: a bell curve bent to lie between 0 and 111 s."""
    middle = math.log(MEDIAN / (LONGEST - MEDIAN))
    bell = [NormalDist().inv_cdf((rank + 0.5) / SUBMISSIONS) for rank in range(SUBMISSIONS)]

    def bent(width: float) -> list[int]:
        return [round(LONGEST / (1 + math.exp(-middle - width * each))) for each in bell[:-1]] + [LONGEST]

    wanted = MEAN * SUBMISSIONS
    found = bent(_solve(lambda width: sum(bent(width)), wanted, 0.0, 3.0))
    # What is left by rounding is a millisecond for some of those in the upper half, below the longest.
    for at in range(wanted - sum(found)):
        found[SUBMISSIONS - 2 - at % (SUBMISSIONS // 4)] += 1
    return found


def _solve(measure: Callable[[float], int], wanted: int, low: float, high: float) -> float:
    """Find the greatest number in between whose measure is not more than wanted, by halving."""
    for _ in range(60):
        middle = (low + high) / 2
        if measure(middle) <= wanted:
            low = middle
        else:
            high = middle
    return low
