"""How much is measured: the sizes behind every figure, in full and in `--quick`.

Quick is for trying the harness and for seeing gross changes; figures to keep come from full runs.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """The sizes of one run."""

    jobs: int = 20_000  # drained, and enqueued in bulk
    single_jobs: int = 5_000
    warm_jobs: int = 500
    latency_samples: int = 500
    idle_seconds: float = 10.0
    memory_jobs: int = 20_000
    memory_payload: int = 1_000
    waiting: tuple[int, ...] = (4_000, 100_000, 1_000_000)
    crowds: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
    submitters: int = 1_000


FULL = Scale()
QUICK = Scale(
    jobs=3_000,
    single_jobs=1_000,
    warm_jobs=200,
    latency_samples=100,
    idle_seconds=3.0,
    memory_jobs=3_000,
    waiting=(4_000, 20_000),
    crowds=(1_000, 10_000),
)
