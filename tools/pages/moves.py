"""Diagrams of states for a site without scripts: each state with those that it can move to."""

import re
from html import escape

_BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MOVE = re.compile(r"^ +(\S+) --> (\S+)$", re.MULTILINE)
_NAME = re.compile(r'^ +state "(.*?)" as (\S+)$', re.MULTILINE)
_EDGE = "[*]"


def without_scripts(markdown: str) -> str:
    """Write the diagrams of a page, which a script would have to draw, as tables."""
    return _BLOCK.sub(lambda found: _table(found[1]), markdown)


def _table(diagram: str) -> str:
    names = {alias: name for name, alias in _NAME.findall(diagram)}
    following: dict[str, list[str]] = {}
    for before, after in _MOVE.findall(diagram):
        if before != _EDGE:
            following.setdefault(before, []).extend([] if after == _EDGE else [after])
    rows = [
        f"<tr><td>{_state(names.get(state, state))}</td><td>→</td><td>{_states(after, names)}</td></tr>"
        for state, after in following.items()
    ]
    return f'<table class="moves">{"".join(rows)}</table>'


def _states(states: list[str], names: dict[str, str]) -> str:
    return " ".join(_state(names.get(state, state)) for state in states) or "the end"


def _state(name: str) -> str:
    return f'<span class="state {escape(name)}">{escape(name)}</span>'
