"""Durations as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maitred import duration


@pytest.mark.parametrize(
    ("written", "microseconds"),
    [
        ("60s", 60_000_000),
        ("15m", 900_000_000),
        ("400ms", 400_000),
        ("7us", 7),
        ("7d", 604_800_000_000),
        ("1h30m", 5_400_000_000),
        ("1h 30m", 5_400_000_000),
        ("1.5s", 1_500_000),
        ("20", 20_000_000),
        ("0.25", 250_000),
        (20, 20_000_000),
        (0.1, 100_000),
        (0, 0),
    ],
)
def test_a_duration_is_a_number_with_a_unit_or_plain_seconds(written: object, microseconds: int) -> None:
    assert duration.parse(written) == microseconds


@pytest.mark.parametrize(
    "nonsense",
    [
        "",
        "s",
        "1x",
        "1s2",
        "-1s",
        "1,5s",
        "٣s",
        -1,
        True,
        None,
        float("nan"),
        float("inf"),
        "9" * 400 + "s",
        10**400,
        [],
        {},
    ],
)
def test_anything_else_is_refused_with_what_is_allowed(nonsense: object) -> None:
    with pytest.raises(ValueError, match="write one like"):
        duration.parse(nonsense)


@given(st.integers(0, 10**15))
def test_what_is_shown_reads_back_as_the_same(microseconds: int) -> None:
    assert duration.parse(duration.show(microseconds)) == microseconds
