"""`python -m benchmarks simulate`: play the workloads, print the tables, or put them into `docs/`."""

import argparse
import sys
import time
from collections.abc import Sequence

from benchmarks.simulation.page import PAGE, PLOT, with_section
from benchmarks.simulation.play import Play, play
from benchmarks.simulation.plot import plot
from benchmarks.simulation.policies import policies_for
from benchmarks.simulation.tables import tables
from benchmarks.simulation.workloads import WORKLOADS

SEED = 1


def main(words: Sequence[str]) -> int:
    options = _options(words)
    for name in options.workload or WORKLOADS:
        plays = simulate(name, options.seed)
        print(f"## {name}, seed {options.seed}\n\n{tables(plays)}", flush=True)
        if options.write:
            PAGE.write_text(with_section(PAGE.read_text("utf-8"), name, tables(plays)), "utf-8")
            if name == "deadline":
                PLOT.write_text(plot(plays), "utf-8")
    return 0


def simulate(name: str, seed: int) -> list[Play]:
    """Play one workload under each of its policies."""
    workload = WORKLOADS[name](seed)
    plays = []
    for policy in policies_for(workload):
        begun = time.monotonic()
        plays.append(play(workload, policy, seed))
        print(f"{name}, {policy.name}: {time.monotonic() - begun:.1f} s", file=sys.stderr, flush=True)
    return plays


def _options(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks simulate",
        description="Play workloads in virtual time on the rule that Maitred runs on.",
    )
    parser.add_argument("--seed", type=int, default=SEED, help=f"who comes when ({SEED})")
    parser.add_argument(
        "--workload",
        action="append",
        choices=list(WORKLOADS),
        help="one of them, more than once if you like (all)",
    )
    parser.add_argument(
        "--write", action="store_true", help=f"put the tables and the plot into {PAGE.parent.name}/"
    )
    options = parser.parse_args(words)
    if options.write and options.seed != SEED:
        parser.error(f"the pages are written with seed {SEED}, so that everybody gets the same")
    return options
