"""Sizes as people write them, and as the rules count them: whole bytes.

A size is a number with a unit: `200GB`, `1.5 TB`, `512MiB`, `4096B`. `kB`, `MB`, `GB` and `TB` are powers of
1000; `KiB`, `MiB`, `GiB` and `TiB` powers of 1024. A plain number is bytes.
"""

import re
from decimal import Decimal

_UNITS = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}
_READ = {
    **_UNITS,
    "": 1,
    "KB": 10**3,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
}
_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) ?([A-Za-z]{0,3})")


def parse(value: object) -> int:
    """Give the bytes of a size.

    Raises `ValueError` with what is allowed for anything else, negative and endless numbers included.
    """
    text = str(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else ""
    found = _SIZE.fullmatch(text)
    if not found or found[2] not in _READ:
        raise ValueError(f'{value!r} is not a size; write one like "4096B", "500MB", "200GB" or "1.5TiB"')
    return round(Decimal(found[1]) * _READ[found[2]])


def show(size: int) -> str:
    """Write a size for people, in the largest unit that it fills: `3 GB`, `1.5 TB`."""
    unit = next((name for name in reversed(_UNITS) if size >= _UNITS[name]), "B")
    return f"{size / _UNITS[unit]:.4g} {unit}" if size >= _UNITS["kB"] else f"{size} B"
