"""What a measurement is: it takes a system and a way to open stands, and gives a few named numbers."""

from abc import ABC, abstractmethod

from benchmarks.scale import Scale
from benchmarks.stand import Stands
from benchmarks.systems.system import System

Reading = dict[str, float]


class Figure(ABC):
    """One kind of measurement, taken once per system and round, or once per run."""

    name: str
    every_round = True

    @abstractmethod
    def applies_to(self, system: System) -> bool:
        """Say whether the system has what is measured."""

    @abstractmethod
    def measure(self, system: System, stands: Stands, scale: Scale) -> Reading:
        """Take one reading. Raises `BenchmarkError`."""

    @abstractmethod
    def words(self, reading: Reading) -> str:
        """Say a reading in a few words, for the line of progress."""
