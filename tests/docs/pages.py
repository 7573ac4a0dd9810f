"""The pages that people read, and what can be tried in them: fenced blocks, links and headings."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and where it stands."""

    page: Path
    line: int
    language: str
    text: str

    @property
    def file(self) -> str | None:
        """The name of the file that the block is, if its first line says so: `# kitchen.py`."""
        named = re.match(r"# (\S+\.\w+)\n", self.text)
        return named[1] if named else None

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@cache
def blocks(page: Path) -> list[Block]:
    """Give a page's blocks in order."""
    text = page.read_text("utf-8")
    return [
        Block(page, text.count("\n", 0, found.start()) + 1, found[1], found[2])
        for found in _FENCE.finditer(text)
    ]


def all_blocks(*languages: str) -> list[Block]:
    """Give the blocks of all pages in these languages."""
    return [block for page in PAGES for block in blocks(page) if block.language in languages]


def prose(page: Path) -> str:
    """Give a page without its blocks."""
    return _FENCE.sub("", page.read_text("utf-8"))


def links(page: Path) -> list[str]:
    """Give where a page's links lead."""
    return _LINK.findall(prose(page))


def anchors(page: Path) -> set[str]:
    """Give the names by which a page's headings are linked to."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def rows(page: Path) -> list[list[str]]:
    """Give the cells of all table rows of a page."""
    found = re.findall(r"^\| (.*) \|$", prose(page), re.MULTILINE)
    return [[cell.strip() for cell in row.split(" | ")] for row in found]
