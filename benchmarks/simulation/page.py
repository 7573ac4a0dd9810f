"""Puts tables and plot into `docs/`: between two marks of the page, and nothing else of it is touched."""

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "simulation.md"
PLOT = DOCS / "floor-waits.svg"


def section(page: str, name: str) -> str:
    """Give what stands between the marks of this name; a page without them is an error."""
    return _found(page, name)[0].strip("\n") + "\n"


def with_section(page: str, name: str, text: str) -> str:
    """Put a text between the marks of this name; a page without them is an error."""
    start, end = _found(page, name).span()
    return f"{page[:start]}\n{text}\n{page[end:]}"


def _found(page: str, name: str) -> re.Match[str]:
    marks = rf"(?<=<!-- simulated: {name} -->\n).*?(?=<!-- end of {name} -->)"
    found = re.search(marks, page, re.DOTALL)
    if found is None:
        raise ValueError(f"the page has no marks for {name!r}")
    return found
