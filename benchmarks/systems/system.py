"""What a system must give to be measured: how to start its producer and its worker.

The programs do the rest; they all speak the same lines (`benchmarks/program.py`), so a measurement never
needs to know which system it has before it.
"""

import contextlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from benchmarks.program import Command
from benchmarks.stand import Stand, Stands


class System(ABC):
    """One queue, with the settings that it is measured with."""

    name: str
    settings: str
    bulk = False
    # The bare hand-off is no queue: it has neither jobs nor a line.
    runs_jobs = True
    has_probe = False
    # The figures that it is there for; None for all that apply.
    figures: frozenset[str] | None = None

    def prepare(self) -> None:
        """Install what is missing. Raises `PeerUnavailable` if that cannot be done here."""
        return

    @abstractmethod
    def version(self) -> str:
        """Give the version that is measured; call it after `prepare`."""

    @contextlib.contextmanager
    def at(self, stands: Stands) -> Iterator[Stand]:
        """Open a stand of this system's own."""
        with stands.open() as stand:
            self.set_up(stand)
            yield stand

    def set_up(self, stand: Stand) -> None:
        """Do to a fresh store what an operator does once."""
        del stand

    @abstractmethod
    def producer(self, stand: Stand) -> Command:
        """Say how to start the producer."""

    @abstractmethod
    def worker(self, stand: Stand) -> Command:
        """Say how to start the worker: one command, one process."""

    def probe(self, stand: Stand) -> Command:
        """Say how to start the program that `figures/server_time.py` talks to, if `has_probe`."""
        raise NotImplementedError


def python_program(
    system: str, role: str, stand: Stand, *, python: Path | None = None, **environment: str
) -> Command:
    """Give the command for `benchmarks/programs/<system>_<role>.py`, under this interpreter or another."""
    return Command(
        name=f"{system}-{role}",
        argv=[python or sys.executable, "-m", f"benchmarks.programs.{system}_{role}"],
        environment={"BENCH_STORE": str(stand.store.socket), **environment},
    )
