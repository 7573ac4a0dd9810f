"""A command: options that it shares with others, examples in its help, and how it ends.

Options that go together are fields of a dataclass. A command whose first parameter is one of these has its
options too, after its own, and gets them as that parameter.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, get_type_hints

import typer

from maitred.cli.exits import expected

P = ParamSpec("P")
Group = TypeVar("Group")


class Commands(typer.Typer):
    """Commands that stand together in the help, under a `title` if they have one."""

    def __init__(self, title: str | None = None, **more: Any) -> None:
        super().__init__(**more)
        self._title = title

    def add(
        self, *examples: str, name: str | None = None
    ) -> Callable[[Callable[Concatenate[Group, P], None]], Callable[Concatenate[Group, P], None]]:
        """Add a command, by its function's name or another; its help shows the examples."""

        def adding(
            function: Callable[Concatenate[Group, P], None],
        ) -> Callable[Concatenate[Group, P], None]:
            epilog = "\n\n".join(["For example:", *(f"$ {example}" for example in examples)])
            add = self.command(name, help=_told(function), epilog=epilog, rich_help_panel=self._title)
            add(expected(_with_group(function)))
            return function

        return adding


def _told(function: Callable[..., None]) -> str:
    """Give what a function says of itself, each paragraph on one line, for a screen of any width."""
    paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
    return "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)


def _with_group(function: Callable[Concatenate[Group, P], None]) -> Callable[..., None]:
    """Give a function that takes each option of the group, instead of the group."""
    first, *own = inspect.signature(function).parameters.values()
    if not dataclasses.is_dataclass(first.annotation):
        return function
    group: Any = first.annotation
    hints = get_type_hints(group, include_extras=True)
    shared = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in dataclasses.fields(group)
    ]

    @functools.wraps(function)
    def run(**given: Any) -> None:
        options = {each.name: given.pop(each.name) for each in shared}
        function(group(**options), **given)  # type: ignore[call-arg]

    # What reads a signature must not read that of the function itself.
    del run.__wrapped__
    run.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined]
    return run
