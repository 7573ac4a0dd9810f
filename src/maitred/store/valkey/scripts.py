"""The function library that is loaded into the server, put together from `lua/`.

Each file in `lua/` is one verb with a contract header; the pieces that verbs share are in `lua/lib/`. The
name of the library carries a hash of its text, so that two versions of Maitred can work on one server.
"""

import re
from functools import cache
from hashlib import sha256
from importlib.resources import files

from maitred.core import floor, house, line, seating
from maitred.core.classes import WHOLE
from maitred.core.job import BLOCKED, COMMAND, DEFAULT_PRIORITY
from maitred.store.valkey.keys import NAMES

SCHEMA = 2
LIBRARY_ORDER = (
    "codec",
    "news",
    "state",
    "line",
    "floor",
    "delay",
    "endings",
    "seating",
    "reclaim",
    "cycle",
    "views",
)
CONSTANTS: dict[str, int | str] = {
    "SCHEMA": SCHEMA,
    "STARTS_PER_CYCLE": seating.STARTS_PER_CYCLE,
    "EXPIRIES_PER_STEP": seating.EXPIRIES_PER_STEP,
    "WORKERS_PER_STEP": seating.WORKERS_PER_STEP,
    "SWEPT_PER_TICK": house.SWEPT_PER_TICK,
    "LANES_KEPT": 32,
    "EVENTS_KEPT": 2048,
    "MOST_SLOTS": floor.MOST_SLOTS,
    "DELAY_STEP": line.DELAY_STEP,
    "COMMAND": COMMAND,
    "DEFAULT_PRIORITY": DEFAULT_PRIORITY,
    "BLOCKED_NEED": BLOCKED,
    "WHOLE": WHOLE,
}


@cache
def verbs() -> dict[str, str]:
    """Give the text of each verb by its name."""
    folder = files("maitred.store.valkey") / "lua"
    return {
        entry.name.removesuffix(".lua"): entry.read_text()
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".lua")
    }


@cache
def _body() -> str:
    shared = files("maitred.store.valkey") / "lua" / "lib"
    constants = [f"local {name} = {_lua(value)}" for name, value in CONSTANTS.items()]
    names = ", ".join(f"{name} = {_lua(text)}" for name, text in NAMES.items())
    parts = [
        "local VERBS",
        "local function build()",
        *constants,
        f"local K = {{ {names} }}",
        *(_shared((shared / f"{name}.lua").read_text()) for name in LIBRARY_ORDER),
        "local verb = {}",
        *(f"do\n{text}\nend" for text in verbs().values()),
        "return verb",
        "end",
    ]
    return "\n".join(parts)


def _shared(text: str) -> str:
    """Keep what a shared file does not `give` to itself: Lua allows 200 local names at once."""
    found = re.search(r"^-- gives: (.*)$", text, re.MULTILINE)
    if not found:
        return text
    names = found.group(1)
    for name in names.split(", "):
        text = text.replace(f"local function {name}(", f"function {name}(")
    return f"local {names}\ndo\n{text}\nend"


@cache
def version() -> str:
    """Give the hash that names the library and its functions."""
    return sha256(_body().encode()).hexdigest()[:12]


def function(verb: str) -> str:
    """Give the name by which a verb is called."""
    return f"maitred_{version()}_{verb}"


@cache
def library() -> str:
    """Give the whole text to load.

    The closures are built at the first call: while a library loads, the server offers no `redis.call`.
    """
    registered = [
        f"redis.register_function{{ function_name = '{function(name)}', flags = {{ {_flags(text)} }}, "
        f"callback = function(keys, args) VERBS = VERBS or build() return VERBS.{name}(keys, args) end }}"
        for name, text in verbs().items()
    ]
    return "\n".join([f"#!lua name=maitred_{version()}", _body(), *registered]) + "\n"


def _flags(text: str) -> str:
    found = re.search(r"^-- flags:(.*)$", text, re.MULTILINE)
    if not found:
        raise ValueError("a verb's header has no `flags:` line")
    return ", ".join(f"'{flag}'" for flag in found.group(1).split())


def _lua(value: int | str) -> str:
    return str(value) if isinstance(value, int) else f"'{value}'"
