"""What the steps of a script answered: one response for each, together small enough to be kept as a result.

Each stream keeps its last part, as that of a command does. When all of them are too much together, the
longest are cut further, all to the same length, so that a short answer stays whole beside an endless one.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from maitred.worker.outcome import RESULT_LIMIT
from maitred.worker.output import TAIL_LIMIT, Tail

# The rest of the result has to fit too.
LIMIT = RESULT_LIMIT - 128 * 1024

_encode = msgspec.json.Encoder().encode


class Response:
    """What one step answered: facts, and what it printed by stream; a condition prints nothing."""

    def __init__(self, facts: dict[str, Any], *streams: str) -> None:
        self.facts = facts
        self.tails = {stream: Tail() for stream in streams}

    def shown(self) -> dict[str, Any]:
        """Give it as the result has it."""
        return {**self.facts, **{stream: tail.text() for stream, tail in self.tails.items()}}


class Responses:
    """The responses of one run, in the order of the steps that were run."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._all: list[Response] = []
        self._facts = 0
        self._texts: dict[Tail, int] = {}

    def add(self, response: Response) -> None:
        """Take the response of a step that has begun; what it prints comes later."""
        self._all.append(response)

    def settle(self) -> None:
        """Count the last response: its step has ended. What is far too much is cut at once."""
        last = self._all[-1]
        self._facts += _size({**last.facts, **dict.fromkeys(last.tails, "")})
        for tail in last.tails.values():
            del tail.kept[:-TAIL_LIMIT]
            self._texts[tail] = _size(tail.text())
        if self._facts + sum(self._texts.values()) > 2 * self._limit:
            self._cut()

    def shown(self) -> list[dict[str, Any]]:
        """Give them as the result has them, cut to what may be kept."""
        self._cut()
        return [response.shown() for response in self._all]

    def _cut(self) -> None:
        each = fair_share(self._texts.values(), self._limit - self._facts)
        for tail, size in self._texts.items():
            if size > each:
                self._texts[tail] = _shorten(tail, size, each)


def fair_share(sizes: Iterable[int], room: int) -> int:
    """Give the size to which the largest have to be cut so that all fit into the room."""
    ordered = sorted(sizes)
    for index, size in enumerate(ordered):
        share = max(room, 0) // (len(ordered) - index)
        if size > share:
            return share
        room -= size
    return max(ordered, default=0)


def _shorten(tail: Tail, size: int, most: int) -> int:
    """Cut the beginning until the text, written as JSON, is no longer than this; give its size."""
    while tail.kept and size > most:
        kept = len(tail.kept)
        del tail.kept[: max(1, kept - kept * most // size)]
        size = _size(tail.text())
    return size


def _size(value: object) -> int:
    """Count the bytes of a value as JSON, with a comma."""
    return len(_encode(value)) + 1
