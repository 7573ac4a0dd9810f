"""What a single value may be: a duration, a count, a name, a limit, a url. A refusal says what is allowed."""

import re
from decimal import Decimal
from urllib.parse import urlsplit

from pydantic import BeforeValidator

from maitred import duration
from maitred.core.classes import PERCENT, WHOLE, Limit

SCHEMES = ("valkey", "redis", "valkeys", "rediss", "unix")
_NOT_YET = ("valkey+sentinel", "valkey+cluster", "redis+sentinel", "redis+cluster")
_QUEUE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_CLASS_NAME = re.compile(r"[a-z0-9_-]{1,32}")
_PERCENTAGE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3})?) ?%")
MOST_RUNNING = 1_000_000


def between(shortest: str, longest: str) -> BeforeValidator:
    """Take a duration with these bounds, and give its microseconds."""
    low, high = duration.parse(shortest), duration.parse(longest)

    def check(value: object) -> int:
        microseconds = duration.parse(value)
        if not low <= microseconds <= high:
            raise ValueError(f"{value!r} is out of bounds; allowed is {shortest} to {longest}")
        return microseconds

    return BeforeValidator(check)


def count(low: int, high: int) -> BeforeValidator:
    """Take a whole number with these bounds, also as text, which is all that the environment has."""

    def check(value: object) -> int:
        number = int(value) if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value) else value
        if not isinstance(number, int) or isinstance(number, bool) or not low <= number <= high:
            raise ValueError(f"{value!r} is not allowed; allowed is a whole number from {low} to {high}")
        return number

    return BeforeValidator(check)


def queue_name(name: str) -> str:
    """Check the name of a queue."""
    if not _QUEUE_NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} is not a queue's name; allowed are 1 to 63 of a-z, 0-9, _ and -, "
            "with a letter or digit first"
        )
    return name


def class_name(name: str) -> str:
    """Check the name of a duration class."""
    if not _CLASS_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a class's name; allowed are 1 to 32 of a-z, 0-9, _ and -")
    return name


def level_limit(value: object) -> Limit:
    """Read how many running jobs a level may have: a count, or a part in percent."""
    percent = _PERCENTAGE.fullmatch(value) if isinstance(value, str) else None
    number = int(value) if isinstance(value, str) and re.fullmatch(r"\d{1,18}", value) else value
    if percent and 0 < (part := int(Decimal(percent[1]) * PERCENT)) <= WHOLE:
        return Limit(part, percent=True)
    if isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= MOST_RUNNING:
        return Limit(number)
    raise ValueError(
        f"{value!r} is not allowed; allowed is a whole number from 1 to {MOST_RUNNING}, "
        'or a part such as "50%" or "12.5%", above 0 and at most 100%, with at most three decimals'
    )


def show_limit(limit: Limit) -> int | str:
    """Write a limit as the file has it: 2, or "12.5%"."""
    return f"{limit.amount / PERCENT:g}%" if limit.percent else limit.amount


def store_url(url: str) -> str:
    """Check a store's url without ever repeating it: it may hold a password."""
    allowed = (
        "allowed are valkey://HOST:PORT/DB, redis://HOST:PORT/DB, "
        "valkeys:// and rediss:// over TLS, and unix:///PATH"
    )
    try:
        parts = urlsplit(url)
        port_is_right = parts.port is None or parts.port > 0
    except ValueError as error:
        raise ValueError(f"is not a url ({error}); {allowed}") from error
    if parts.scheme in _NOT_YET:
        raise ValueError(f"{parts.scheme}:// is not supported yet; {allowed}")
    if parts.scheme not in SCHEMES:
        raise ValueError(f"{parts.scheme or 'no'}:// is not a known scheme; {allowed}")
    complete = bool(parts.path.strip("/")) if parts.scheme == "unix" else bool(parts.hostname)
    if not complete or not port_is_right:
        raise ValueError(f"it does not say where the server is; {allowed}")
    if parts.scheme != "unix" and not re.fullmatch(r"/?\d*", parts.path):
        raise ValueError(f"the database has to be a number; {allowed}")
    return url
