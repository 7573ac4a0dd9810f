"""The tables at the end of a run: the systems side by side, then the targets."""

from rich.console import Console
from rich.table import Table

from benchmarks.figures.server_time import key
from benchmarks.results import Results
from benchmarks.targets import CLASSES, SUBJECT, Target
from benchmarks.words import rounded, spaced

_WIDTH = 150
_COLOURS = {"reached": "green", "short": "red", "not measured": "dim"}


def show(results: Results, targets: list[Target]) -> None:
    """Print the tables; those about Maitred only if it was measured."""
    console = Console(width=_WIDTH)
    console.print(_systems(results))
    for name, subject in results.subjects.items():
        console.print(f"  {name} {subject.version}: {subject.settings}", style="dim", highlight=False)
    if "server" in results.readings.get(SUBJECT, {}):
        console.print(_server_time(results))
    if "cycle" in results.readings.get(CLASSES, {}) or "plan" in results.readings.get(SUBJECT, {}):
        console.print(_line_length(results))
    if SUBJECT in results.readings:
        console.print(_targets(targets))
    for failure in results.failures:
        console.print(failure, style="red", markup=False, highlight=False)


def _systems(results: Results) -> Table:
    table = Table(
        title=f"no-op jobs, one worker process, {results.server}, {results.allocator}, append-only file "
        f"everysec; medians of {results.rounds} rounds (idle and bytes: one reading)"
    )
    table.add_column("system")
    for heading in (
        "enqueue/s",
        "bulk/s",
        "drain/s",
        "÷ bullmq",
        "÷ dramatiq",
        "start p50 ms",
        "p99 ms",
        "idle cmd/s",
        "idle cpu %",
        "bytes/job",
    ):
        table.add_column(heading, justify="right")
    for name in results.subjects:
        table.add_row(
            name,
            spaced(results.median(name, "single", "jobs_per_s")),
            spaced(results.median(name, "bulk", "jobs_per_s")),
            spaced(results.median(name, "drain", "jobs_per_s")),
            rounded(results.ratio(name, "bullmq", "drain", "jobs_per_s")),
            rounded(results.ratio(name, "dramatiq", "drain", "jobs_per_s")),
            rounded(results.median(name, "latency", "p50_ms")),
            rounded(results.median(name, "latency", "p99_ms")),
            rounded(results.median(name, "idle", "commands_per_s")),
            rounded(results.median(name, "idle", "cpu_percent")),
            spaced(results.median(name, "memory", "bytes_per_job")),
        )
    return table


def _server_time(results: Results) -> Table:
    table = Table(title="Maitred: microseconds of the server per job, by how many jobs wait")
    table.add_column("")
    for size in results.scale.waiting:
        table.add_column(spaced(size), justify="right")
    for verb in ("submit", "start"):
        for per_call in (1, 64):
            table.add_row(
                f"{verb}, {per_call} per call",
                *(
                    rounded(results.median(SUBJECT, "server", key(verb, size, per_call)))
                    for size in results.scale.waiting
                ),
            )
    return table


def _line_length(results: Results) -> Table:
    table = Table(title="Maitred: the cycle and the plan, by how many jobs wait")
    table.add_column("")
    for size in results.scale.crowds:
        table.add_column(spaced(size), justify="right")
    for words, system, figure, number in (
        ("a fast job passes slow ones, µs of the server", CLASSES, "cycle", "past_{}_us"),
        ("a full pass of the plan, s", SUBJECT, "plan", "pass_{}_s"),
        ("appending one and quoting it, µs", SUBJECT, "plan", "append_{}_us"),
    ):
        numbers = (results.median(system, figure, number.format(size)) for size in results.scale.crowds)
        table.add_row(words, *(rounded(each) for each in numbers))
    return table


def _targets(targets: list[Target]) -> Table:
    table = Table(title="what Maitred must show")
    table.add_column("target")
    table.add_column("bound", justify="right")
    table.add_column("measured", justify="right")
    table.add_column("rounds", justify="right")
    table.add_column("")
    for target in targets:
        table.add_row(
            target.what,
            f"{'≥' if target.at_least else '≤'} {rounded(target.bound, target.unit)}",
            rounded(target.measured, target.unit),
            " to ".join(f"{end:.2f}" for end in target.spread or ()),
            f"[{_COLOURS[target.verdict]}]{target.verdict}[/]",
        )
    return table
