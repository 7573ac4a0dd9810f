"""What a single value may be: a duration, a count, a size, a name, a limit, a url.

A refusal says what is allowed.
"""

import re
from collections.abc import Callable
from decimal import Decimal

from pydantic import BeforeValidator

from maitred import duration, size
from maitred.core.classes import PERCENT, WHOLE, Limit
from maitred.core.stages import RESERVED, STAGE_NAME

_QUEUE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_CLASS_NAME = re.compile(r"[a-z0-9_-]{1,32}")
_PERCENTAGE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3})?) ?%")
_ZOOKEEPER = re.compile(r"zookeeper://(?P<servers>[^/]*)(?P<root>/.*)?", re.DOTALL)
_MEMBER = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{1,5})")
MOST_RUNNING = 1_000_000
ENFORCED = (
    "network",
    "pids",
    "files",
    "ipc",
    "uts",
    "privileges",
    "user",
    "memory",
    "processes",
    "disk",
    "file-size",
    "open-files",
    "cpu",
    "cgroup",
)
MOST_STAGES = 32
MOST_PROFILES = 1_000
PROFILE_BYTES = 256


def between(least: str, most: str, parse: Callable[[object], int] = duration.parse) -> BeforeValidator:
    """Take a duration with these bounds, and give its microseconds; or what `parse` reads, as a size."""
    low, high = parse(least), parse(most)

    def check(value: object) -> int:
        found = parse(value)
        if not low <= found <= high:
            raise ValueError(f"{value!r} is out of bounds; allowed is {least} to {most}")
        return found

    return BeforeValidator(check)


def count(low: int, high: int) -> BeforeValidator:
    """Take a whole number with these bounds, also as text, which is all that the environment has."""

    def check(value: object) -> int:
        number = int(value) if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value) else value
        if not isinstance(number, int) or isinstance(number, bool) or not low <= number <= high:
            raise ValueError(f"{value!r} is not allowed; allowed is a whole number from {low} to {high}")
        return number

    return BeforeValidator(check)


def budget(value: object) -> int:
    """Read how much space a queue has, in bytes."""
    found = size.parse(value)
    if not 1 <= found <= size.parse("1000TB"):
        raise ValueError(f"{value!r} is out of bounds; allowed is 1B to 1000TB")
    return found


def names(value: object) -> tuple[str, ...]:
    """Read a list of texts that are not the same; the environment has it as one text with commas."""
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",")]
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"{value!r} is not allowed; allowed is a list of names")
    if twice := {name for name in value if value.count(name) > 1}:
        raise ValueError(f"{min(twice)!r} is there twice; allowed is each name once")
    return tuple(value)


def stage_names(value: object) -> tuple[str, ...]:
    """Check the stages of a pipeline: each is also the name of a state, beside those that there are."""
    stages = names(value)
    if not 1 <= len(stages) <= MOST_STAGES:
        raise ValueError(
            f"there are {len(stages)} stages; allowed are 1 to {MOST_STAGES}, the first one first"
        )
    for name in stages:
        if name in RESERVED:
            raise ValueError(
                f"{name!r} is the name of another state; allowed is any but {', '.join(sorted(RESERVED))}"
            )
        if not re.fullmatch(STAGE_NAME, name):
            raise ValueError(
                f"{name!r} is not a stage's name; allowed are 1 to 32 of a-z, 0-9, _ and -, "
                "with a letter first"
            )
    return stages


def enforced_names(value: object) -> tuple[str, ...]:
    """Check what a worker's sandbox is required to enforce."""
    found = names(value) if value not in ("", [], ()) else ()
    for name in found:
        if name not in ENFORCED:
            raise ValueError(
                f"{name!r} is nothing that a sandbox enforces; allowed are {', '.join(ENFORCED)}"
            )
    return found


def directories(value: object) -> tuple[str, ...]:
    """Check directories that are named by their whole path."""
    found = names(value) if value not in ("", [], ()) else ()
    for name in found:
        parts = name.split("/")[1:]
        if not name.startswith("/") or not {"", ".", ".."}.isdisjoint(parts):
            raise ValueError(f"{name!r} is not allowed; allowed is a whole path such as /opt/tools")
    return found


def profile_names(value: object) -> tuple[str, ...]:
    """Check the profiles that jobs of a queue may name."""
    profiles = names(value)
    if not 1 <= len(profiles) <= MOST_PROFILES:
        raise ValueError(
            f"there are {len(profiles)} profiles; allowed are 1 to {MOST_PROFILES}, or no such key for any"
        )
    for name in profiles:
        if not 1 <= len(name.encode()) <= PROFILE_BYTES or not name.isprintable():
            raise ValueError(
                f"{name!r} is not a profile's name; allowed are 1 to {PROFILE_BYTES} bytes of plain text"
            )
    return profiles


def ledger_url(url: str) -> str:
    """Check where a queue's ledger is: the servers of a ZooKeeper ensemble, and the root of its tree."""
    allowed = "allowed is zookeeper://HOST:PORT/ROOT, with more HOST:PORT after commas"
    found = _ZOOKEEPER.fullmatch(url)
    if not found:
        raise ValueError(f"it is not a ZooKeeper's url; {allowed}")
    for server in found["servers"].split(","):
        member = _MEMBER.fullmatch(server)
        if "@" in server:
            raise ValueError(f"a name and password are not supported; {allowed}")
        if not member or not 1 <= int(member["port"]) <= 65535:
            raise ValueError(f"{server!r} is not a server; {allowed}")
    parts = (found["root"] or "").split("/")[1:]
    if not parts or not {"", ".", ".."}.isdisjoint(parts) or not "".join(parts).isprintable():
        raise ValueError(f"{found['root'] or ''!r} is not a root; {allowed}, without empty parts, . and ..")
    if parts[0] == "zookeeper":
        raise ValueError(f"the tree under /zookeeper is the server's own; {allowed}, with another root")
    return url


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
