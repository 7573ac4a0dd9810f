"""Handlers: Python functions by name, as workers look them up, and the functions of a queue's stages."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from maitred.core.stages import STAGE_NAME
from maitred.errors import ConfigError
from maitred.wire.body import HANDLER_NAME

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


class Handlers(Mapping[str, Function]):
    """The functions of one queue, sync or async; each is called with a job's `args` as keywords.

    Beside them are those of its `stages`, which are called with the job.
    """

    def __init__(self) -> None:
        self.stages: dict[str, Function] = {}
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

    def register_stage(self, name: str, function: F) -> F:
        """Let `function` carry jobs through the stage of this name; raises `ConfigError` as `register` does.

        Whether the queue has such a stage is known when a worker starts.
        """
        if not re.fullmatch(STAGE_NAME, name):
            raise ConfigError(
                f"{name!r} is not a stage's name; allowed are 1 to 32 of a-z, 0-9, _ and -, "
                "with a letter first."
            )
        if self.stages.setdefault(name, function) is not function:
            raise ConfigError(f"There are two functions for the stage {name!r}.")
        return function

    def add(self, others: "Handlers") -> None:
        """Register all of another's functions too."""
        for name, function in others.items():
            self.register(name, function)
        for name, function in others.stages.items():
            self.register_stage(name, function)

    def __getitem__(self, name: str) -> Function:
        return self._functions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)
