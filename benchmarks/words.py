"""How numbers are written for people."""

NONE = "\N{EN DASH}"
TIMES = "\N{MULTIPLICATION SIGN}"


def spaced(number: float | None) -> str:
    """Write a whole number in groups of three, or a dash if there is none."""
    return NONE if number is None else f"{number:,.0f}".replace(",", "\N{THIN SPACE}")


def rounded(number: float | None, unit: str = "") -> str:
    """Write a number with two digits after the point, or a dash if there is none."""
    return NONE if number is None else f"{number:.2f}{unit}"
