"""What `make bench` holds Maitred against, as a table: what `benchmarks/targets.py` says, and its bounds."""

from benchmarks.results import Results
from benchmarks.scale import Scale
from benchmarks.targets import Target, targets

MARK = "<!-- the bounds of make bench -->"


def with_bounds(markdown: str) -> str:
    """Put the table where a page has the mark for it."""
    return markdown.replace(MARK, _table()) if MARK in markdown else markdown


def _table() -> str:
    rows = [_row(target) for target in targets(Results(Scale(), rounds=0)) if target.bound is not None]
    return "\n".join(["| what | bound |", "|---|---|", *rows])


def _row(target: Target) -> str:
    side = "at least" if target.at_least else "at most"
    return f"| {target.what} | {side} {target.bound:g}{target.unit} |"
