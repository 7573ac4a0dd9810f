"""Handlers: Python functions by name, as workers look them up."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from maitred.errors import ConfigError
from maitred.wire.body import HANDLER_NAME

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


class Handlers(Mapping[str, Function]):
    """The functions of one queue, sync or async; each is called with a job's `args` as keywords."""

    def __init__(self) -> None:
        self._functions: dict[str, Function] = {}

    def register(self, name: str, function: F) -> F:
        """Let `function` run the jobs of this name.

        Raises `ConfigError` if the name is not allowed, or is another function's.
        """
        if not re.fullmatch(HANDLER_NAME, name):
            raise ConfigError(
                f"{name!r} is not a handler's name; allowed are at most 128 letters, digits, _, ., : and -, "
                "with a letter or _ first."
            )
        if self._functions.setdefault(name, function) is not function:
            raise ConfigError(f"There are two handlers with the name {name!r}.")
        return function

    def __getitem__(self, name: str) -> Function:
        return self._functions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)
