"""Draw the states of jobs and batches from the tables in the code into `docs/ledger.md`, between its markers.

`make diagrams` writes them; with `--check` nothing is written, and the exit status tells whether they differ.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from maitred.core import stages
from maitred.core.batch import MOVES

PAGE = Path(__file__).parents[1] / "docs" / "ledger.md"


def draw(table: Mapping[str, Sequence[str]]) -> str:
    """Draw a table of moves as mermaid: it begins with the first state, and ends where no move leads on."""
    alias = {state: state.replace("-", "_") for state in table}
    lines = ["stateDiagram-v2"]
    lines += [f'    state "{state}" as {name}' for state, name in alias.items() if name != state]
    lines += [f"    [*] --> {alias[next(iter(table))]}"]
    for state, following in table.items():
        lines += [f"    {alias[state]} --> {alias[each]}" for each in following]
        if not following:
            lines.append(f"    {alias[state]} --> [*]")
    return "\n".join(lines)


DIAGRAMS = {
    "plain": draw(stages.moves(stages.DEFAULT)),
    "ingest": draw(stages.moves(stages.INGEST)),
    "batch": draw({str(state): [str(each) for each in following] for state, following in MOVES.items()}),
}


def drawn(page: str) -> str:
    """Give the page with all diagrams as the code has them; a marker that is missing is an error."""
    for name, diagram in DIAGRAMS.items():
        pattern = re.compile(rf"(<!-- diagram: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        block = f"```mermaid\n{diagram}\n```\n"
        page, count = pattern.subn(lambda found, block=block: found[1] + block + found[2], page)  # type: ignore[misc]
        if count != 1:
            raise SystemExit(f"docs/ledger.md has {count} places for the diagram {name!r}")
    return page


def main() -> int:
    """Write the page, or compare it; 1 if it differs from the code."""
    before = PAGE.read_text("utf-8")
    after = drawn(before)
    if "--check" in sys.argv[1:]:
        return int(before != after)
    PAGE.write_text(after, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
