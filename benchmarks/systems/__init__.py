"""The systems that are measured, in the order in which the first round takes them."""

from benchmarks.systems.bare import Bare
from benchmarks.systems.bullmq import BullMQ
from benchmarks.systems.classes import Classes
from benchmarks.systems.dramatiq import Dramatiq
from benchmarks.systems.huey import Huey
from benchmarks.systems.maitred import Maitred
from benchmarks.systems.system import System

__all__ = ["SYSTEMS", "System"]

SYSTEMS: dict[str, System] = {
    system.name: system for system in (Maitred(), Classes(), Dramatiq(), Huey(), BullMQ(), Bare())
}
