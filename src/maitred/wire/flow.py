"""The flow of a script: its steps as they stand, and which step each end of a step leads to.

A target is the label of any step, the index of a step in the same list, steps of its own, or a word: `next`
is the step after this one in its list; after the last of a nested list, the one after the step that the list
belongs to; after the last of all, `output`. So words and nested steps always lead forward, and only a label
or an index can lead back.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from maitred.wire.faults import whole

NEXT, OUTPUT, ABORT = "next", "output", "abort"
WORDS = (NEXT, OUTPUT, ABORT)
DEEPEST = 32
MOST_STEPS = 1000

Path = tuple[int | str, ...]


class Mistake(NamedTuple):
    """What is wrong at a place of a script."""

    path: Path
    message: str


@dataclass(slots=True, eq=False)
class Node:
    """A step, where it stands, and where its ends lead: to another step, or to `output` or `abort`."""

    step: Any
    path: Path
    siblings: "list[Node]"
    index: int
    parent: "Node | None"
    number: int = 0
    ends: "dict[str, Node | str]" = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Where it stands, such as `2.on_fail.0`."""
        return ".".join(map(str, self.path))

    @property
    def name(self) -> str:
        """Its label, or else where it stands."""
        label = self.step.get("label")
        return f"step {self.place}" if label is None else repr(label)

    @property
    def defaults(self) -> dict[str, str]:
        """Its ends, and where they lead if nothing else is said."""
        if not isinstance(self.step, dict):
            return {}
        if "cmd" in self.step:
            return {"on_complete": NEXT, "on_fail": ABORT}
        return {"on_true": NEXT, "on_false": NEXT} if "condition" in self.step else {}

    def following(self) -> "Node | str":
        """Give what comes after it."""
        if self.index + 1 < len(self.siblings):
            return self.siblings[self.index + 1]
        return self.parent.following() if self.parent else OUTPUT

    def next_steps(self) -> "Iterator[tuple[str, Node]]":
        """Give the ends that lead to steps, and those."""
        return ((end, node) for end, node in self.ends.items() if isinstance(node, Node))


class Flow:
    """All steps of a script in the order in which they stand, and what is wrong with labels and targets.

    Whatever else is wrong with a step is passed over here.
    """

    def __init__(self, steps: list[Any]) -> None:
        """Read the steps; `mistakes` tells what cannot be followed."""
        self.nodes: list[Node] = []
        self.mistakes: list[Mistake] = []
        self._labels: dict[str, Node] = {}
        self._count = 0
        self._enter(steps, (), None)
        if self._count > MOST_STEPS:
            self.mistakes = [Mistake((), f"has more than {MOST_STEPS} steps")]
            return
        for node in self.nodes:
            for end, word in node.defaults.items():
                if end not in node.ends:
                    self._lead(node, end, node.step.get(end, word))

    def _enter(
        self, target: list[Any] | dict[str, Any], path: Path, parent: Node | None, depth: int = 1
    ) -> list[Node]:
        """Read steps, or a single one, and those nested in them. Of too many none is read."""
        steps = target if isinstance(target, list) else [target]
        self._count += len(steps)
        if self._count > MOST_STEPS:
            return []
        siblings: list[Node] = []
        for index, step in enumerate(steps):
            here = (*path, index) if steps is target else path
            siblings.append(Node(step, here, siblings, index, parent))
        for node in siblings:
            node.number = len(self.nodes)
            self.nodes.append(node)
            self._note_label(node)
            for end in node.defaults:
                self._nest(node, end, node.step.get(end), depth)
        return siblings

    def _note_label(self, node: Node) -> None:
        label = node.step.get("label") if isinstance(node.step, dict) else None
        if not isinstance(label, str):
            return
        path = (*node.path, "label")
        if label in WORDS:
            self.mistakes.append(Mistake(path, f"cannot be {label}: that word is a target already"))
        elif label in self._labels:
            other = self._labels[label].place
            self.mistakes.append(Mistake(path, f"is the label of step {other} already"))
        self._labels.setdefault(label, node)

    def _nest(self, node: Node, end: str, target: object, depth: int) -> None:
        """Read the steps that stand where a target is named."""
        if not isinstance(target, dict | list):
            return
        # What is wrong is told here; it leads nowhere else.
        node.ends[end] = ABORT
        path = (*node.path, end)
        if depth == DEEPEST:
            self.mistakes.append(Mistake(path, f"is nested deeper than {DEEPEST} levels"))
        elif not target:
            self.mistakes.append(Mistake(path, "must have at least one step"))
        else:
            children = self._enter(target, path, node, depth + 1)
            node.ends[end] = children[0] if children else ABORT

    def _lead(self, node: Node, end: str, target: object) -> None:
        """Find what a word, a label or an index leads to."""
        target = whole(target)
        path = (*node.path, end)
        if target == NEXT:
            node.ends[end] = node.following()
        elif target in (OUTPUT, ABORT):
            node.ends[end] = str(target)
        elif isinstance(target, str):
            if target in self._labels:
                node.ends[end] = self._labels[target]
            else:
                self.mistakes.append(Mistake(path, "is not the label of any step"))
        elif isinstance(target, int) and not isinstance(target, bool):
            if 0 <= target < len(node.siblings):
                node.ends[end] = node.siblings[target]
            else:
                last = len(node.siblings) - 1
                self.mistakes.append(Mistake(path, f"is not the index of a step here, from 0 to {last}"))
        else:
            words = "must be a label, the index of a step, steps, or next, output or abort"
            self.mistakes.append(Mistake(path, words))


def order_mistakes(nodes: list[Node]) -> list[Mistake]:
    """Give where a flow without other mistakes leads back to a step that was run, and what it never reaches.

    Each circle has an end that leads back to a step that stands before it; that one is told. Of steps that
    are never reached the first is told, and not those that it leads to.
    """
    found: dict[Path, Mistake] = {}
    seen: set[Node] = set()
    for start in nodes:
        if start not in seen:
            if start.number:
                found[start.path] = Mistake(start.path, "is never reached")
            seen.add(start)
            for mistake in _circles(start, seen):
                found.setdefault(mistake.path, mistake)
    return list(found.values())


def _circles(start: Node, seen: set[Node]) -> Iterator[Mistake]:
    """Go every way from a step that leads to what was not seen yet, and tell the circles on it."""
    way: list[tuple[Node, Iterator[tuple[str, Node]]]] = [(start, start.next_steps())]
    taken: list[tuple[Node, str, Node]] = []
    on_way = {start}
    while way:
        node, ends = way[-1]
        step = next(ends, None)
        if step is None:
            way.pop()
            on_way.discard(node)
            del taken[max(len(way) - 1, 0) :]
            continue
        end, other = step
        if other in on_way:
            yield _blamed([*taken, (node, end, other)], other)
        elif other not in seen:
            seen.add(other)
            on_way.add(other)
            taken.append((node, end, other))
            way.append((other, other.next_steps()))


def _blamed(taken: list[tuple[Node, str, Node]], first: Node) -> Mistake:
    """Give the end that leads back in a circle, which is the last part of the way taken, from `first` on."""
    begin = max(at for at, (node, _, _) in enumerate(taken) if node is first)
    node, end, back = next(step for step in taken[begin:] if step[2].number <= step[0].number)
    return Mistake((*node.path, end), f"leads back to {back.name}: the script would go in a circle")
