"""Durations as people write them, and as the rules count them: whole microseconds.

A duration is a number with a unit, or several of them one after the other: `400ms`, `60s`, `15m`, `1h30m`,
`7d`. A plain number is seconds.
"""

import re
from decimal import Decimal

_UNITS = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,15})?"
_PART = re.compile(rf"({_NUMBER})(us|ms|s|m|h|d)")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")


def parse(value: object) -> int:
    """Give the microseconds of a duration.

    Raises `ValueError` with what is allowed for anything else, negative and endless numbers included.
    """
    text = str(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else ""
    text = text.replace(" ", "")
    if re.fullmatch(_NUMBER, text):
        text += "s"
    if not _WHOLE.fullmatch(text):
        raise ValueError(
            f'{value!r} is not a duration; write one like "400ms", "60s", "15m", "1h30m" or "7d"'
        )
    return round(sum(Decimal(number) * _UNITS[unit] for number, unit in _PART.findall(text)))


def show(microseconds: int) -> str:
    """Write a duration so that `parse` reads the same one back: `1h30m`, `400ms`."""
    parts = []
    for unit in reversed(_UNITS):
        count, microseconds = divmod(microseconds, _UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
