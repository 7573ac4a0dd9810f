"""The diagrams of docs/ledger.md are those of the tables in the code."""

import re

import pytest

from maitred.core.batch import BatchState
from maitred.core.stages import INGEST, moves
from tests.docs.pages import ROOT, blocks
from tools import diagrams

PAGE = ROOT / "docs" / "ledger.md"


def test_the_diagrams_on_the_page_are_drawn_from_the_code() -> None:
    page = PAGE.read_text("utf-8")
    assert diagrams.drawn(page) == page, "`make diagrams` draws them anew"


def test_every_diagram_has_a_place_on_the_page() -> None:
    with pytest.raises(SystemExit):
        diagrams.drawn("a page without markers")


def test_a_diagram_has_every_state_and_every_move() -> None:
    plain, ingest, batch = [block.text for block in blocks(PAGE) if block.language == "mermaid"]
    drawn = set(re.findall(r"^    (\w+) --> (\w+)$", ingest, re.MULTILINE))
    assert drawn == {(old, new) for old, following in moves(INGEST).items() for new in following}
    assert "processing --> completed" in plain
    assert all(state.replace("-", "_") in batch for state in BatchState)
