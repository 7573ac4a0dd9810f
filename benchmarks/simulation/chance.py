"""Random numbers that are the same on every machine and in every version of Python.

Python promises that only of `random()` itself, so everything here is made of it. Times are rounded to whole
milliseconds, so that the last digit of a logarithm does not matter.
"""

import math
import random
from collections.abc import Sequence
from typing import TypeVar

MILLISECOND = 1_000

T = TypeVar("T")


class Chance:
    """Throws that depend on a seed and on what they are for."""

    def __init__(self, seed: int, purpose: str) -> None:
        self._random = random.Random(f"{seed} {purpose}")

    def part(self) -> float:
        """Give a number from 0 up to, and not including, 1."""
        return self._random.random()

    def one_of(self, weights: dict[T, float]) -> T:
        """Choose one by its weight."""
        left = self.part() * sum(weights.values())
        for one, weight in weights.items():
            left -= weight
            if left < 0:
                return one
        return next(reversed(weights))

    def exponential(self, mean: float) -> float:
        """Give a time as between events that know nothing of each other."""
        return -mean * math.log(1 - self.part())

    def between(self, low: float, high: float) -> float:
        """Give any number between two, all alike."""
        return low + (high - low) * self.part()

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Give the items in another order."""
        keys = [self.part() for _ in items]
        return [items[at] for at in sorted(range(len(items)), key=keys.__getitem__)]


def microseconds(seconds: float) -> int:
    """Turn seconds into microseconds, rounded to the millisecond."""
    return round(seconds * 1_000) * MILLISECOND
