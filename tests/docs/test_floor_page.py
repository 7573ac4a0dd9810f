"""What docs/floor.md says of limits is what the rule computes."""

import re

from maitred.core.classes import PERCENT, DurationClass, Limit, limits
from tests.docs.pages import ROOT, rows

PAGE = ROOT / "docs" / "floor.md"


def limit_of(words: str) -> Limit:
    """Read a row's name: "medium 50 %", "then slow 25 %", "medium 3"."""
    found = re.fullmatch(r"(?:medium|then slow) (\d+)( %)?", words)
    assert found, words
    amount = int(found[1])
    return Limit(amount * PERCENT, percent=True) if found[2] else Limit(amount)


def test_the_table_of_limits_is_what_the_rule_computes() -> None:
    table = [row for row in rows(PAGE) if len(row) == 9 and not row[0].startswith("-")]
    slots, *lines = table
    assert slots == ["slots", *map(str, range(1, 9))]
    for medium, slow in zip(lines[::2], lines[1::2], strict=True):
        classes = [
            DurationClass("fast", 3),
            DurationClass("medium", 10, limit_of(medium[0])),
            DurationClass("slow", 30, limit_of(slow[0])),
        ]
        computed = [limits(classes, number) for number in range(1, 9)]
        assert [int(cell) for cell in medium[1:]] == [found[1] for found in computed], medium
        assert [int(cell) for cell in slow[1:]] == [found[2] for found in computed], slow
