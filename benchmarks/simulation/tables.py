"""The tables of a simulation, as Markdown that can be read on a terminal too."""

import statistics
import textwrap
from collections.abc import Callable, Sequence

from benchmarks.simulation.play import Play
from benchmarks.simulation.workloads import ELASTIC

Column = tuple[str, Callable[[Play], str]]


def tables(plays: Sequence[Play]) -> str:
    """Write all tables of one workload, with a sentence about it."""
    workload = plays[0].workload
    about = workload.about.replace(" %", "\N{NO-BREAK SPACE}%")
    parts = [textwrap.fill(about, 120), overview(plays), by_class(plays)]
    if workload.again:
        parts.append(fairness(plays))
    return "\n\n".join(parts) + "\n"


def overview(plays: Sequence[Play]) -> str:
    """Write how long all waited, what became of them, and how well the slots were used."""
    columns: list[Column] = [
        ("policy", lambda play: play.policy.name),
        ("mean wait s", lambda play: seconds(play.waits().mean)),
        *((f"p{percent}", _percent(percent)) for percent in (50, 90, 99)),
        ("max", lambda play: seconds(play.waits().p(100))),
        ("completed", lambda play: str(play.count(""))),
        ("cut", lambda play: str(play.count("cut"))),
        ("time limit", lambda play: str(play.count("time-limit"))),
    ]
    if any(arrival.interactive for arrival in plays[0].workload.arrivals):
        columns += [
            ("halted", lambda play: str(play.count("halted"))),
            ("denied", lambda play: str(play.count("denied"))),
        ]
    columns += [
        ("goodput", lambda play: f"{play.goodput:.1%}"),
        ("utilisation", lambda play: f"{play.utilisation:.1%}"),
    ]
    return _table(columns, plays)


def by_class(plays: Sequence[Play]) -> str:
    """Write how long those waited who asked for the same."""
    workload = plays[0].workload
    columns: list[Column] = [("mean / p99 wait s", lambda play: play.policy.name)]
    for asked in (*(each.name for each in workload.classes), ELASTIC):
        sent = sum(workload.asked(arrival) == asked for arrival in workload.arrivals)
        columns.append((f"{asked} ({sent})", _mean_and_worst(asked)))
    return _table(columns, plays)


def fairness(plays: Sequence[Play]) -> str:
    """Write how long the heaviest submitter waited beside the one in the middle."""
    heaviest = plays[0].wait_of_each()[0][0]
    return _table(
        [
            ("mean wait of a submitter, s", lambda play: play.policy.name),
            (f"heaviest ({heaviest} jobs)", lambda play: seconds(_heaviest(play))),
            ("median submitter", lambda play: seconds(_middle(play))),
            ("heaviest ÷ median", lambda play: f"{_heaviest(play) / _middle(play):.2f}"),
        ],
        plays,
    )


def seconds(number: float) -> str:
    """Write seconds as tables show them."""
    return f"{number:.1f}"


def _percent(percent: int) -> Callable[[Play], str]:
    return lambda play: seconds(play.waits().p(percent))


def _mean_and_worst(asked: str) -> Callable[[Play], str]:
    return lambda play: f"{seconds(play.waits_of(asked).mean)} / {seconds(play.waits_of(asked).p(99))}"


def _heaviest(play: Play) -> float:
    return play.wait_of_each()[0][1]


def _middle(play: Play) -> float:
    return statistics.median(mean for _, mean in play.wait_of_each())


def _table(columns: Sequence[Column], plays: Sequence[Play]) -> str:
    cells = [[name for name, _ in columns], *([cell(play) for _, cell in columns] for play in plays)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(columns))]
    lines = [
        "| "
        + " | ".join(
            _padded(cell, width, at) for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        + " |"
        for row in cells
    ]
    ruler = (
        "|" + "|".join("-" * (width + 1) + ("-" if at == 0 else ":") for at, width in enumerate(widths)) + "|"
    )
    return "\n".join([lines[0], ruler, *lines[1:]])


def _padded(cell: str, width: int, at: int) -> str:
    return cell.ljust(width) if at == 0 else cell.rjust(width)
