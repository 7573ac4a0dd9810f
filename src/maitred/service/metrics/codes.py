"""How ends are named in labels: the codes that Maitred itself gives, and one word for all others.

A program may end its jobs with any code of its own; a label with as many values would grow without a bound.
"""

COMPLETED = "completed"
OTHER = "other"

_OF_RUNS = (
    "error",
    "exit",
    "time-limit",
    "stopped",
    "files",
    "command",
    "script",
    "result",
    "no-handler",
    "memory",
    "processes",
    "disk",
    "file-size",
    "cpu",
    "idle",
)
_OF_THE_HOUSE = (
    "cut",
    "halted",
    "cancelled",
    "deleted",
    "expired",
    "abandoned",
    "attempts",
    "space",
    "superseded",
)
KNOWN = frozenset({*_OF_RUNS, *_OF_THE_HOUSE})


def label_of(code: str) -> str:
    """Give the label of a code; no code is `completed`."""
    if not code:
        return COMPLETED
    return code if code in KNOWN else OTHER
