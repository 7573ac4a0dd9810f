"""The function library that is loaded into the server, put together from `lua/`.

Each file in `lua/` is one verb with a contract header; the pieces that verbs share are in `lua/lib/`. The
name of the library carries a hash of its text, so that two versions of Maitred can work on one server.
"""

import re
from functools import cache
from hashlib import sha256
from importlib.resources import files

from maitred.core import floor, gate, house, ledger, line, notices, sayings, seating, speaking, stages
from maitred.core.classes import WHOLE
from maitred.core.job import BLOCKED, COMMAND, DEFAULT_PRIORITY, LACKING
from maitred.store.valkey.keys import NAMES
from maitred.store.valkey.pieces import STREAMS

SCHEMA = 4
LIBRARY_ORDER = (
    "codec",
    "news",
    "batches",
    "state",
    "speech",
    "line",
    "floor",
    "delay",
    "holds",
    "notices",
    "endings",
    "sweeping",
    "seating",
    "reclaim",
    "cycle",
    "views",
    "checking",
)
# What the scripts share with the core: words as names of their own, bounds in the table C.
WORDS = {
    "COMMAND": COMMAND,
    "BLOCKED_NEED": BLOCKED,
    "LACKING_NEED": LACKING,
    "STAGE": stages.STAGE,
    "DEFAULT_STAGE": stages.DEFAULT[0],
    "PROVISIONING": stages.PROVISIONING,
}
BOUNDS = {
    "SCHEMA": SCHEMA,
    "DEFAULT_PRIORITY": DEFAULT_PRIORITY,
    "STARTS_PER_CYCLE": seating.STARTS_PER_CYCLE,
    "EXPIRIES_PER_STEP": seating.EXPIRIES_PER_STEP,
    "WORKERS_PER_STEP": seating.WORKERS_PER_STEP,
    "RETURNS_PER_STEP": seating.RETURNS_PER_STEP,
    "HELD_PER_WALK": gate.HELD_PER_WALK,
    "SWEPT_PER_TICK": house.SWEPT_PER_TICK,
    "BATCHES_PER_SWEEP": ledger.BATCHES_PER_SWEEP,
    "ROWS_PER_STEP": ledger.ROWS_PER_STEP,
    "MOST_NOTICES": notices.MOST_NOTICES,
    "DELIVERIES_KEPT": notices.DELIVERIES_KEPT,
    "LOCKED_FOR": notices.LOCKED_FOR,
    "STOP_PATIENCE": notices.STOP_PATIENCE,
    "MOST_LOCKED": 100,
    "LANES_KEPT": 32,
    "EVENTS_KEPT": 2048,
    "MOST_SLOTS": floor.MOST_SLOTS,
    "DELAY_STEP": line.DELAY_STEP,
    "WHOLE": WHOLE,
    "PIECE_COST": sayings.PIECE_COST,
    "DROPPED_PER_SAYING": sayings.DROPPED_PER_SAYING,
    "UNREAD_BEFORE_TYPED": speaking.UNREAD_BEFORE_TYPED,
    "PROGRESS": STREAMS.index("progress"),
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
    words = [f"local {name} = '{word}'" for name, word in WORDS.items()]
    bounds = ", ".join(f"{name} = {bound}" for name, bound in BOUNDS.items())
    names = ", ".join(f"{name} = '{text}'" for name, text in NAMES.items())
    parts = [
        "local VERBS",
        "local function build()",
        *words,
        f"local C = {{ {bounds} }}",
        f"local K = {{ {names} }}",
        *(_shared((shared / f"{name}.lua").read_text()) for name in LIBRARY_ORDER),
        "local verb = {}",
        *(f"do\nlocal function load()\n{text}\nend\nload()\nend" for text in verbs().values()),
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


def writes(verb: str) -> bool:
    """Tell whether a verb may change anything."""
    return "no-writes" not in _flags(verbs()[verb])


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
