"""The figures, in the order in which a round takes them."""

from benchmarks.figures.cycle import Cycle
from benchmarks.figures.drain import Drain
from benchmarks.figures.enqueue import Bulk, Single
from benchmarks.figures.figure import Figure, Reading
from benchmarks.figures.foresee import Foreseen
from benchmarks.figures.http import Http
from benchmarks.figures.idle import Idle
from benchmarks.figures.latency import Latency
from benchmarks.figures.memory import Memory
from benchmarks.figures.plan import PlanCost
from benchmarks.figures.server_time import ServerTime
from benchmarks.figures.stages import Stages
from benchmarks.figures.transition import Transition

__all__ = ["FIGURES", "Figure", "Reading"]

FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        Drain(),
        Bulk(),
        Single(),
        Latency(),
        Idle(),
        Memory(),
        ServerTime(),
        Cycle(),
        Stages(),
        Transition(),
        PlanCost(),
        Foreseen(),
        Http(),
    )
}
